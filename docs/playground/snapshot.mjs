// Has Pyodide's Python import modules, and writes its memory, from which a page begins. Reads an archive of Python packages; the modules'
// names are arguments. One that isn't there in Pyodide is passed over.
import { writeFileSync } from "node:fs";
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
writeFileSync(1, python.makeMemorySnapshot());
