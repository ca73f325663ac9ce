"""The page's style: one set of colours for light and one for dark; paper is light."""

LIGHT = """
--ground:#fff;--ink:#1b1f24;--quiet:#5b6470;--rule:#d9dee4;
--s0:#1f6fc4;--s1:#b3590b;--s2:#23804a;--s3:#8a3fb0;
--good:#1a7f42;--bad:#b42318;--unsure:#8a3fb0;--note:#fff4d6;
"""
DARK = """
--ground:#14181d;--ink:#e6e9ed;--quiet:#9aa5b1;--rule:#343c46;
--s0:#6cb0f5;--s1:#f0a35e;--s2:#6fcf97;--s3:#cf95ec;
--good:#6fcf97;--bad:#ff8f84;--unsure:#cf95ec;--note:#3a3013;
"""

STYLE = (
    f":root{{color-scheme:light dark;{LIGHT}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
    """
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:56rem;margin:0 auto;padding:2rem 1.25rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0 0 1rem}
h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
h3{font-size:.95rem;margin:1rem 0 .3rem;color:var(--quiet);font-weight:600}
.simulated{background:var(--note);padding:.6rem .9rem;border-radius:6px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.86rem}
th,td{padding:.4rem .4rem;border-bottom:1px solid var(--rule);text-align:right;
white-space:nowrap;overflow-wrap:normal}
th:first-child,th:last-child,td:last-child{text-align:left}
tbody th{font-weight:500}
thead th{color:var(--quiet);font-weight:600}
.small,footer,.none{color:var(--quiet);font-size:.85rem}
.word{font-weight:650}
.matches,.faster{color:var(--good)}
.slower,.unstable{color:var(--bad)}
.not_comparable{color:var(--unsure)}
.words td,.words th{text-align:left}
.plot{overflow-x:auto}
svg{display:block;width:100%;height:auto}
.lines{min-width:34rem}
.bars{max-width:30rem}
svg text{font-size:13px;fill:var(--quiet)}
.bars text{font-size:12px}
svg .value{fill:var(--ink)}
.grid{stroke:var(--rule)}
.line{fill:none;stroke-width:2}
.range{stroke-width:2;opacity:.45}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}
.dot,.bar{stroke:none}
.dot.s0,.bar.s0{fill:var(--s0)}.dot.s1,.bar.s1{fill:var(--s1)}
.dot.s2,.bar.s2{fill:var(--s2)}.dot.s3,.bar.s3{fill:var(--s3)}
@media print{
main{max-width:none;padding:0}
.wide,.plot{overflow:visible}
table{font-size:.75rem}
th,td{white-space:normal;padding:.3rem}
.lines{min-width:0}
section,table,svg{break-inside:avoid}
h1,h2,h3{break-after:avoid}
.line,.dot,.bar,.range,.simulated{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
"""
)
