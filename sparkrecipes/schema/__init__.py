"""Every fact and every answer as a frozen, strict type; one module a subject.

The JSON of the command line, the results of the Python functions and the files of the
catalog are these types. A JSON Schema per kind of catalog file is generated from them.
"""
