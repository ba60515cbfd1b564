// Prepares Python for the page: reads an archive of packages, and has Pyodide's Python import modules, whose names are arguments; one that
// isn't there in Pyodide is passed over. Writes the number of bytes of that Python's memory, from which a page begins, in eight bytes, the
// memory, and the archive with its modules compiled and the parser's table, not compressed. The memory is kept before anything is compiled.
import { writeSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [folder, ...names] = process.argv.slice(2);
const archive = await buffer(process.stdin);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/`, stdout: () => {}, env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" }, _makeSnapshot: true });
python.FS.writeFile("/packages.zip", new Uint8Array(archive)); // objects of JavaScript in Python's hands couldn't be kept
python.FS.writeFile("/names", names.join("\n"));
python.runPython(`
import importlib, sys, zipfile
from contextlib import suppress

place = "/lib/python3.13/site-packages"
with zipfile.ZipFile("/packages.zip") as archive:
    archive.extractall(place)
importlib.invalidate_caches()
with open("/names") as stream:
    names = stream.read().split()
for name in names:
    with suppress(ImportError):
        importlib.import_module(name)
`);
const memory = python.makeMemorySnapshot();
python.runPython(`
import compileall, os
from py_compile import PycInvalidationMode

compileall.compile_dir(place, quiet=2, force=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
own = os.listdir(place)
`);
const quiet = { messageCallback: () => {}, errorCallback: () => {} };
await python.loadPackage("msgspec", quiet); // which the parser needs; it is here where the page has Pyodide beside it
python.runPython(`
with suppress(ImportError): # without it the page makes the table itself
    from tpucc.diagnostics import Source
    from tpucc.language.parse import parse
    parse(Source("first.tpu", "param batch = 8")) # which stores the parser's table
with zipfile.ZipFile("/made.zip", "w") as archive:
    for at, folders, files in os.walk(place):
        for name in files:
            path = os.path.join(at, name)
            relative = os.path.relpath(path, place)
            if relative.partition("/")[0] in own:
                archive.write(path, relative)
`);
const size = Buffer.alloc(8);
size.writeBigUInt64BE(BigInt(memory.length));
for (const part of [size, memory, python.FS.readFile("/made.zip")]) {
  for (let written = 0; written < part.length;) written += writeSync(1, part, written);
}
