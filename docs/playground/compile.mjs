// Reads an archive of Python packages, has Pyodide's Python compile its modules and store the parser's table, and writes the archive.
import { writeFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const archive = await buffer(process.stdin);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/`, stdout: () => {} });
python.unpackArchive(new Uint8Array(archive), "zip", { extractDir: "/made" });
python.runPython(`
import compileall, os, sys, zipfile
from py_compile import PycInvalidationMode

compileall.compile_dir("/made", quiet=2, stripdir="/made", prependdir="/lib/python3.13/site-packages",
                       invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
sys.path.insert(0, "/made")
from lark import Transformer
from tpucc.frontend import layout, limits, table
table.parser("module", postlex=layout.Layout(limits.Limits(), flat=False), transformer=Transformer())
with zipfile.ZipFile("/made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for place, folders, names in os.walk("/made"):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            with open(path, "rb") as stream:
                archive.writestr(zipfile.ZipInfo(os.path.relpath(path, "/made")), stream.read(), zipfile.ZIP_DEFLATED)
`);
writeFileSync(1, python.FS.readFile("/made.zip"));
