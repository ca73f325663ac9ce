"""The sentences of an answer in English and Spanish; everything else is figures and ids."""

# ruff: noqa: E501 (one sentence a line reads better than one broken in two)
from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any

from sparkrecipes.schema.recommendation import Language

SENTENCES: dict[str, tuple[str, str]] = {
    # figures
    "single_user_tok_s": ("{0:.1f} tok/s for one user", "{0:.1f} tok/s con un usuario"),
    "four_users_total_tok_s": (
        "{0:.1f} tok/s for four users together",
        "{0:.1f} tok/s en total con cuatro usuarios",
    ),
    "ttft_ms": ("first token after {0:.0f} ms", "primer token a los {0:.0f} ms"),
    "long_prompt_46k_s": (
        "{0:.1f} s for a prompt of 46,000 tokens",
        "{0:.1f} s para un prompt de 46 000 tokens",
    ),
    "memory_gb": (
        "{0:.1f} GB of memory taken, as published",
        "{0:.1f} GB de memoria ocupada, según lo publicado",
    ),
    "single_user_tok_s_per_memory_gb": (
        "{0:.2f} tok/s for one user a GB of memory taken",
        "{0:.2f} tok/s con un usuario por GB de memoria ocupada",
    ),
    "params_total_b": ("{0:g} billion parameters", "{0:g} mil millones de parámetros"),
    "params_active_b": (
        "{0:g} billion active parameters",
        "{0:g} mil millones de parámetros activos",
    ),
    "measured": ("(measured, {evidence})", "(medido, {evidence})"),
    "own_count": ("(the model's own count)", "(cifra del propio modelo)"),
    "doubtful": (
        "ranked after sound figures: {why}",
        "va detrás de las cifras sin dudas: {why}",
    ),
    "ahead_of": ("ahead of {other}: {figure}", "por delante de {other}: {figure}"),
    "by_workload": (
        "{tok_s:g} tok/s on {workload}{without}{accepted} (measured, {evidence})",
        "{tok_s:g} tok/s en {workload}{without}{accepted} (medido, {evidence})",
    ),
    "without": (", {0:g} without speculation", ", {0:g} sin decodificación especulativa"),
    "accepted": ("; {0:g} % of the drafts are taken", "; se acepta el {0:g} % de los borradores"),
    "position": (
        "acceptance falls by position ({shares}): of {k} draft tokens the last ones hardly pay",
        "la aceptación cae por posición ({shares}): de {k} borradores los últimos apenas compensan",
    ),
    # why not
    "does_not": ("it does not {abilities}", "no puede {abilities}"),
    "too_short": (
        "it serves {has:,} tokens of context, this use needs {needs:,}",
        "sirve {has:,} tokens de contexto y este uso necesita {needs:,}",
    ),
    "reach": (
        "its longest context is {has:,} tokens, {needs:,} are asked for",
        "su contexto máximo es de {has:,} tokens y se piden {needs:,}",
    ),
    "does_not_run": ("known not to run: {why}", "se sabe que no corre: {why}"),
    "unstable": (
        "its source calls it unstable ({evidence})",
        "su fuente lo llama inestable ({evidence})",
    ),
    "engine": ("it runs on {has}, not on {wanted}", "corre con {has}, no con {wanted}"),
    "licence": (
        "its licence is {has}, asked for: {wanted}",
        "su licencia es {has}; se pide: {wanted}",
    ),
    "too_slow": (
        "at most {high:.1f} tok/s for each of {users} users ({basis}), {wanted:g} are asked for",
        "como mucho {high:.1f} tok/s para cada uno de {users} usuarios ({basis}); se piden {wanted:g}",
    ),
    "speed_unsure": (
        "untested: {low:.1f} to {high:.1f} tok/s for each of {users} users ({basis}), {wanted:g} are not sure",
        "sin probar: de {low:.1f} a {high:.1f} tok/s para cada uno de {users} usuarios ({basis}); {wanted:g} no son seguros",
    ),
    "too_large": (
        "it does not fit: {context:,} tokens x {users} users need{need} of {usable:.1f} usable{less}",
        "no cabe: {context:,} tokens x {users} usuarios necesitan{need} de {usable:.1f} utilizables{less}",
    ),
    "need_at_least": (" at least {0:.1f} GiB", " al menos {0:.1f} GiB"),
    "less_users": ("; {0} would fit", "; {0} cabrían"),
    "leaves_too_little": (
        "it takes at least {takes:.1f} GB and would leave {left:.1f} of the {wanted:g} GB that must "
        "stay free",
        "ocupa al menos {takes:.1f} GB y dejaría {left:.1f} de los {wanted:g} GB que deben quedar libres",
    ),
    "free_too_little": (
        "it needs {takes:.1f} of the {free:g} GB that are free now: after freeing {short:.1f} GB",
        "necesita {takes:.1f} GB y ahora hay {free:g} GB libres: tras liberar {short:.1f} GB",
    ),
    # how it stands
    "untested": (
        "untested: nobody has published figures of it by this method",
        "sin probar: nadie ha publicado cifras suyas con este método",
    ),
    "elsewhere": (
        "nearly this, elsewhere and not ranked: {figure} ({row})",
        "algo parecido, en otra fuente y sin clasificar: {figure} ({row})",
    ),
    "local_build": (
        "no registry has its image, so it ranks last: {how}",
        "ningún registro tiene su imagen, así que va al final: {how}",
    ),
    "memory_unknown": (
        "what memory it needs is not known",
        "no se sabe cuánta memoria necesita",
    ),
    "tight": (
        "tight: it needs {low:.1f} to {high:.1f} of {usable:.1f} GiB",
        "justo: necesita de {low:.1f} a {high:.1f} de {usable:.1f} GiB",
    ),
    "fits": (
        "fits: it needs at most {high:.1f} of {usable:.1f} GiB",
        "cabe: necesita como mucho {high:.1f} de {usable:.1f} GiB",
    ),
    "other_settings": (
        "its figures were measured at {c:,} tokens x {u} users, not at {wc:,} x {wu}: expect other "
        "speeds",
        "sus cifras se midieron con {c:,} tokens x {u} usuarios, no con {wc:,} x {wu}: espere otras "
        "velocidades",
    ),
    "speed_sure": (
        "each of {users} users gets {low:.1f} tok/s or more ({basis})",
        "cada uno de {users} usuarios recibe {low:.1f} tok/s o más ({basis})",
    ),
    "speed_maybe": (
        "each of {users} users gets {low:.1f} to {high:.1f} tok/s ({basis}): {wanted:g} are not sure",
        "cada uno de {users} usuarios recibe de {low:.1f} a {high:.1f} tok/s ({basis}): {wanted:g} no "
        "son seguros",
    ),
    "speed_unknown": (
        "its speed for {users} users is not known",
        "no se sabe su velocidad con {users} usuarios",
    ),
    "basis_measured": ("measured", "medido"),
    "basis_estimated": ("estimated", "estimado"),
    "load_elsewhere": (
        "with {users} users elsewhere, not ranked: {total:g} tok/s together{each} ({row})",
        "con {users} usuarios en otra fuente, sin clasificar: {total:g} tok/s en total{each} ({row})",
    ),
    "each": (", {0:g} each", ", {0:g} cada uno"),
    "p95": (", p95 of the latency {0:g} s", ", latencia p95 de {0:g} s"),
    "language_named": (
        "a source names {languages} among its languages",
        "una fuente nombra {languages} entre sus idiomas",
    ),
    "language_unnamed": (
        "no source that was read names {languages} among its languages: try it first",
        "ninguna fuente leída nombra {languages} entre sus idiomas: pruébelo antes",
    ),
    "licence_unknown": (
        "its licence is not known: read it before you use it",
        "no se conoce su licencia: léala antes de usarlo",
    ),
    "lower_fraction": (
        "to take no more, set its memory fraction to {fraction:g}: sparkrecipes command {id} "
        "--gpu-memory-utilization {fraction:g}",
        "para no ocupar más, fije su fracción de memoria en {fraction:g}: sparkrecipes command {id} "
        "--gpu-memory-utilization {fraction:g}",
    ),
    "leaves": (
        "it takes {takes:.1f} GB and leaves {left:.1f} GB free",
        "ocupa {takes:.1f} GB y deja {left:.1f} GB libres",
    ),
    "takes_of_free": (
        "it takes {takes:.1f} of the {free:g} GB that are free now",
        "ocupa {takes:.1f} de los {free:g} GB que hay libres ahora",
    ),
    # warnings
    "usually_needs": (
        "{use} usually needs {need:,} tokens of context or more",
        "{use} suele necesitar {need:,} tokens de contexto o más",
    ),
    "free_first": (
        "{id} fits after freeing {short:.1f} GiB{instead}",
        "{id} cabe tras liberar {short:.1f} GiB{instead}",
    ),
    "fits_now": (
        "; {0} fits in what is free now",
        "; {0} cabe en lo que hay libre ahora",
    ),
    "none_fits_now": ("; nothing fits as it is", "; nada cabe tal como está"),
    "note_in_english": ("{0}", "(en inglés) {0}"),
    "assumed_use": (
        "no use was named: answered for {use}",
        "no se nombra ningún uso: respuesta para {use}",
    ),
    "model_named": (
        "a model is not picked by its name ({named}): figures decide; sparkrecipes list --all shows the "
        "recipes of each model",
        "un modelo no se elige por su nombre ({named}): deciden las cifras; sparkrecipes list --all muestra "
        "las recetas de cada modelo",
    ),
    "writes_text": (
        "no recipe does {made!r}: every one of them answers in text",
        "ninguna receta hace {made!r}: todas responden con texto",
    ),
    "ask_what_it_reads": (
        "ask for what it reads or does, e.g. sparkrecipes recommend 'image input'",
        "pida lo que lee o hace, p. ej. sparkrecipes recommend 'ver imágenes'",
    ),
    "no_amount": ("{amount} is no amount", "{amount} no es una cantidad"),
    "above_zero": ("give it as a number above 0", "escriba un número mayor que 0"),
    "no_engine": ("no engine has the id {engine!r}", "ningún motor tiene el id {engine!r}"),
    "one_of": ("one of: {known}", "uno de: {known}"),
    "several_users": (
        "several numbers of users are named ({told}): this is for {users}; for another give --users N",
        "se nombran varios números de usuarios ({told}): la respuesta es para {users}; para otro, --users N",
    ),
    "users_first": (
        "for {users} users the speed of four together ranks before that of one",
        "para {users} usuarios la velocidad de cuatro a la vez cuenta antes que la de uno",
    ),
    "tier_maybe": (
        "nothing is sure to give {wanted:g} tok/s to each of {users} users: the pick may",
        "nada asegura {wanted:g} tok/s a cada uno de {users} usuarios: la elección puede darlos",
    ),
    # misuse
    "ambiguous": (
        "{question} names more than one use case: {several}",
        "{question} nombra más de un uso: {several}",
    ),
    "two_uses": ("{first} and {second} at once", "{first} y {second} a la vez"),
    "ask_one": (
        "ask for one of them, e.g. sparkrecipes recommend {one}; or for two recipes on one machine: sparkrecipes recommend {pair}",
        "pida uno de ellos, p. ej. sparkrecipes recommend {one}; o dos recetas en una máquina: sparkrecipes recommend {pair}",
    ),
    "no_use": ("{question} names no use case", "{question} no nombra ningún uso"),
    "did_you_mean": ("did you mean {near}? ", "¿quiso decir {near}? "),
    "ask_for": ("ask for one of: {known}", "pida uno de: {known}"),
    # nothing suits
    "relax_context_tokens": (
        "with {0:,} tokens of context: {pick}",
        "con {0:,} tokens de contexto: {pick}",
    ),
    "relax_users": ("with {0} users: {pick}", "con {0} usuarios: {pick}"),
    "relax_min_tok_s_per_user": (
        "without {0:g} tok/s for each user: {pick}",
        "sin {0:g} tok/s por usuario: {pick}",
    ),
    "relax_modalities": ("without {0}: {pick}", "sin {0}: {pick}"),
    "relax_free_now_gb": (
        "with more than {0:g} GB free: {pick}",
        "con más de {0:g} GB libres: {pick}",
    ),
    "relax_leave_free_gb": (
        "without leaving {0:g} GB free: {pick}",
        "sin dejar {0:g} GB libres: {pick}",
    ),
    "relax_licences": ("under any licence: {pick}", "con cualquier licencia: {pick}"),
    "relax_engines": ("on any engine: {pick}", "con cualquier motor: {pick}"),
    "relax_use_case": (
        "to {0} alone: {pick}",
        "para {0} y nada más: {pick}",
    ),
    "outgrown": (
        "where one Spark is not enough: for two or more of them sparkrecipes command {id} --format sparkrun, "
        "for a cluster --format kubernetes; clients change their base URL alone",
        "si un Spark se queda corto: para dos o más, sparkrecipes command {id} --format sparkrun; para un "
        "clúster, --format kubernetes; los clientes solo cambian la URL base",
    ),
    # two at once
    "pair_sum": (
        "together they take {total:.1f} GiB of {usable:.1f}, {left:.1f} stay free beside the host's "
        "{reserve:.1f}",
        "juntos ocupan {total:.1f} GiB de {usable:.1f}; quedan {left:.1f} libres además de los "
        "{reserve:.1f} del sistema",
    ),
    "pair_start": (
        "start the first, wait until it is ready (sparkrecipes wait {id}), then start the second: an "
        "engine looks for free memory when it starts",
        "arranque el primero, espere a que esté listo (sparkrecipes wait {id}) y arranque el segundo: "
        "un motor mira la memoria libre al arrancar",
    ),
    "pair_speed": (
        "both share one memory bus: while both answer, each is slower than published; nobody measured "
        "how much",
        "ambos comparten el bus de memoria: mientras responden los dos, cada uno va más lento que lo "
        "publicado; nadie ha medido cuánto",
    ),
    "pair_alone": (
        "one recipe alone does both: {id}",
        "una sola receta hace ambas cosas: {id}",
    ),
    "pair_none": (
        "no two recipes fit side by side at these settings",
        "no hay dos recetas que quepan a la vez con estos ajustes",
    ),
}
"""English and Spanish; a test holds both to the same places."""

ABILITIES: dict[str, tuple[str, str]] = {
    "text": ("read text", "leer texto"),
    "image": ("see images", "ver imágenes"),
    "audio": ("hear audio", "oír audio"),
    "video": ("watch video", "ver vídeo"),
    "tools": ("call tools", "llamar a herramientas"),
    "reasoning": ("reason before it answers", "razonar antes de responder"),
}

WORKLOADS: dict[str, tuple[str, str]] = {
    "code": ("code", "código"),
    "json_tools": ("JSON with tools", "JSON con herramientas"),
    "long_summary": ("long summaries", "resúmenes largos"),
    "spanish_writing": ("Spanish writing", "redacción en español"),
}

TONGUES: dict[str, tuple[str, str]] = {
    "es": ("Spanish", "español"),
    "en": ("English", "inglés"),
    "fr": ("French", "francés"),
    "de": ("German", "alemán"),
    "it": ("Italian", "italiano"),
    "pt": ("Portuguese", "portugués"),
    "ca": ("Catalan and Valencian", "catalán y valenciano"),
    "zh": ("Chinese", "chino"),
    "ja": ("Japanese", "japonés"),
    "hi": ("Hindi", "hindi"),
    "th": ("Thai", "tailandés"),
    "eu": ("Basque", "euskera"),
    "gl": ("Galician", "gallego"),
}
OR: dict[Language, str] = {"en": " or ", "es": " o "}
NOR: dict[Language, str] = {"en": " or ", "es": " ni "}


class _SpanishNumbers(Formatter):
    """Write thousands apart with a space: a comma is a decimal sign in Spanish."""

    def format_field(self, value: Any, format_spec: str) -> str:
        told = str(super().format_field(value, format_spec))
        return told.replace(",", " ") if format_spec == "," else told


def say(tongue: Language, key: str, *values: object, **named: object) -> str:
    """Write a sentence of the answer."""
    english, spanish = SENTENCES[key]
    if tongue == "es":
        return _SpanishNumbers().format(spanish, *values, **named)
    return english.format(*values, **named)


def word(table: dict[str, tuple[str, str]], key: str, tongue: Language) -> str:
    """Write one word of a table; what it does not hold stays as it is."""
    return table[key][tongue == "es"] if key in table else key.replace("_", " ")


def abilities(missing: Sequence[str], tongue: Language) -> str:
    """Write what a recipe cannot do."""
    return NOR[tongue].join(word(ABILITIES, need, tongue) for need in missing)
