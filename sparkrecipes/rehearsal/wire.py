"""The wire: HTTP, server-sent events, and what a request is refused for."""

from __future__ import annotations

import contextlib
import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from sparkrecipes.rehearsal.answers import offered_tool
from sparkrecipes.rehearsal.decoding import Stopped, Stream, clock
from sparkrecipes.rehearsal.prompts import NEEDS, Prompt
from sparkrecipes.rehearsal.replies import Reply, deltas_of, models_page

if TYPE_CHECKING:
    from sparkrecipes.rehearsal.double import EngineDouble

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 64 * 1024 * 1024
IDLE_S = 120.0

NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


class BadRequest(Exception):
    """A request that is answered with an error.

    Attributes:
        status: The HTTP status.
        kind: The error's type, as vLLM names it.
    """

    def __init__(self, message: str, status: int = 400, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Server(ThreadingHTTPServer):
    """A thread a connection, none of which outlives the process."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, double: EngineDouble) -> None:
        self.double = double
        self.connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, 0), Handler)

    @property
    def base_url(self) -> str:
        """Where it answers."""
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    def close_all(self) -> None:
        """Close every connection, and the port."""
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_S
    server: Server

    def setup(self) -> None:
        """Let the server know of the connection, so that it can close it."""
        super().setup()
        self.double = self.server.double
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        """Forget the connection."""
        self.server.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        """Serve the connection; a client that goes away is nobody's error."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a rehearsal's own lines are the only ones on stderr."""

    def do_GET(self) -> None:
        """Answer a page."""
        double, engine = self.double, self.double.engine
        path = self.path.split("?")[0]
        if path == engine.health_path:
            self.reply(b"", 200 if double.ready else 503)
        elif not double.ready:
            self.fail(BadRequest("still loading", 503, "ServiceUnavailable"))
        elif path == engine.models_path:
            self.reply_json(models_page(double.recipe, double.started_at))
        elif path == "/version" and double.recipe.engine_version:
            self.reply_json({"version": f"{double.recipe.engine_version}+simulated"})
        elif path in (engine.metrics_path, "/metrics"):
            self.reply(double.metrics().encode(), content_type="text/plain; version=0.0.4")
        else:
            self.fail(BadRequest("Not Found", 404, "NotFoundError"))

    def do_POST(self) -> None:
        """Answer a chat completion."""
        arrived_s = clock()
        try:
            request = self.read_request()
            if self.path.split("?")[0] != self.double.engine.chat_path:
                raise BadRequest("Not Found", 404, "NotFoundError")
            prompt = admitted(request, self.double)
            self.complete(request, prompt, arrived_s)
        except BadRequest as err:
            self.fail(err)
        except Stopped:
            self.close_connection = True

    def read_request(self) -> dict[str, Any]:
        """Read the body of a request.

        Raises:
            BadRequest: It is too large, or no JSON object.
        """
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if not 0 <= length <= LARGEST_BODY:
            self.close_connection = True
            raise BadRequest("a Content-Length of at most 64 MiB is needed")
        try:
            request = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError) as err:
            raise BadRequest(f"the body is not JSON: {err}") from None
        if not isinstance(request, dict):
            raise BadRequest("the body is not a JSON object")
        return request

    def complete(self, request: dict[str, Any], prompt: Prompt, arrived_s: float) -> None:
        """Play a completion, streamed or whole."""
        double = self.double
        answer = double.speaker.answer(request, pictures=bool(prompt.kinds))
        cached = double.cache.look_up(prompt)
        double.count_prompt(prompt.tokens)
        reply = Reply(double.recipe.served_model_name, answer, prompt.tokens, cached)
        with double.decoder.stream(arrived_s, prompt.tokens - cached) as stream:
            if request.get("stream"):
                self.stream(request, reply, stream)
            else:
                for _ in double.steps(answer, stream):
                    pass
                self.reply_json(reply.whole())
        double.count_finished(answer.finish_reason)

    def stream(self, request: dict[str, Any], reply: Reply, stream: Stream) -> None:
        """Send a completion as events, each when its last token is due."""
        options = request.get("stream_options")
        options = options if isinstance(options, dict) else {}
        continuous = bool(options.get("continuous_usage_stats"))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        for step in self.double.steps(reply.answer, stream):
            if not sent:
                self.event(reply.chunk({"role": "assistant", "content": ""}))
            for delta in deltas_of(step, reply.answer, sent):
                sent += delta.pop("tokens")
                usage = reply.usage(sent) if continuous else None
                self.event(reply.chunk(delta, usage=usage))
        self.event(reply.chunk({}, finish_reason=reply.answer.finish_reason))
        if options.get("include_usage"):
            self.event(reply.chunk(None, usage=reply.usage(sent)))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: dict[str, Any] | str) -> None:
        """Send one event as one chunk."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        body = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body))

    def fail(self, err: BadRequest) -> None:
        """Answer an error as vLLM words it."""
        error = {"message": str(err), "type": err.kind, "param": None, "code": err.status}
        self.reply_json({"error": error}, err.status)

    def reply_json(self, data: dict[str, Any], status: int = 200) -> None:
        """Answer JSON."""
        self.reply(json.dumps(data, ensure_ascii=False).encode(), status)

    def reply(self, body: bytes, status: int = 200, content_type: str = "application/json") -> None:
        """Answer a whole body."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def admitted(request: dict[str, Any], double: EngineDouble) -> Prompt:
    """Return the prompt of a request that this engine would take.

    Raises:
        BadRequest: 503 while loading, 404 for another model, 400 for what the recipe does not
            claim or the context does not hold.
    """
    recipe = double.recipe
    if not double.ready:
        raise BadRequest("still loading", 503, "ServiceUnavailable")
    if request.get("model") != recipe.served_model_name:
        wanted = request.get("model")
        raise BadRequest(f"The model `{wanted}` does not exist.", 404, "NotFoundError")
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        raise BadRequest("messages: a list with at least one message is needed")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = request.get(name)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise BadRequest(f"{name} must be at least 1, got {limit}.")
    if offered_tool(request) and "tools" not in recipe.capabilities:
        raise BadRequest(NO_TOOLS)
    prompt = Prompt.of(request["messages"])
    for kind in sorted(prompt.kinds):
        if NEEDS[kind] not in recipe.capabilities:
            raise BadRequest(f"{recipe.served_model_name} is not a multimodal model for {kind}")
    refuse_too_long(request, prompt, recipe.serving.context_tokens)
    return prompt


def refuse_too_long(request: dict[str, Any], prompt: Prompt, context: int) -> None:
    """Refuse what the context does not hold.

    Raises:
        BadRequest: The prompt, or the prompt with its answer, is longer than the context.
    """
    limit = request.get("max_completion_tokens") or request.get("max_tokens") or 1
    if prompt.tokens + limit > context:
        raise BadRequest(
            f"This model's maximum context length is {context} tokens. However, your request has "
            f"{prompt.tokens} input tokens and asks for {limit}. Please reduce the length of the "
            "input messages."
        )
