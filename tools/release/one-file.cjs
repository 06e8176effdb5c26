/** Starts the program in the one-file binary: loads its chunks from the binary, each when it is first needed. */
'use strict';
const { getAsset } = require('node:sea');
const { compileFunction } = require('node:vm');

/** @type {Map<string, { exports: unknown }>} */
const loaded = new Map();

/** @param {string} name @returns {unknown} */
function load(name) {
  if (!name.startsWith('./')) return require(name);
  const known = loaded.get(name);
  if (known !== undefined) return known.exports;
  const chunk = { exports: {} };
  loaded.set(name, chunk);
  const source = getAsset(name.slice(2), 'utf8');
  const run = compileFunction(source, ['require', 'module', 'exports'], { filename: name });
  Reflect.apply(run, undefined, [load, chunk, chunk.exports]);
  return chunk.exports;
}

load('./program.js');
