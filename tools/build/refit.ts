/** Builds the `refit` command as it ships: plain JavaScript in one directory, packages included. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { textsInside } from './texts-inside.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const REFIT = join(ROOT, 'src', 'cmd', 'refit.ts');
const LAUNCHER = join(import.meta.dirname, 'launch.cjs');

/** The name of the file that loads the other files, in the directory that `buildProgram` writes. */
export const PROGRAM = 'program.js';

/** The form of the JavaScript. Refit ships it minified. In the readable form, a stack trace has readable names. */
export type Form = 'minified' | 'readable';

/**
 * Empties `directory`, writes the command and its chunks into it, and resolves with the path of the command. Node can
 * also run the source, but then its type stripper stays in memory, which costs 40 MiB in every agent. `input` is the
 * path of another program to build in the same way.
 */
export async function buildRefit(directory: string, form?: Form, input?: string): Promise<string> {
  await buildProgram(directory, form, input);
  // Without this file, Node.js would use the `type` of the package to decide how to read the files.
  await writeFile(join(directory, 'package.json'), '{"type":"commonjs"}\n');
  const launcher = await readFile(LAUNCHER, 'utf8');
  const command = join(directory, 'refit.js');
  await writeFile(command, launcher.replace('LEAST_MAJOR', String(await leastMajor())), {
    mode: 0o755,
  });
  return command;
}

/**
 * Empties `directory` and writes the program into it. Each subcommand loads only its own chunks. The format is CommonJS
 * for two reasons: Node's loader of ES modules needs 5 MiB in every agent, and a single executable application can load
 * only CommonJS by name.
 */
export async function buildProgram(
  directory: string,
  form: Form = 'minified',
  input = REFIT,
): Promise<void> {
  const names = { entryFileNames: PROGRAM, chunkFileNames: '[name]-[hash].js' } as const;
  const output = {
    dir: directory,
    format: 'cjs',
    minify: form === 'minified',
    cleanDir: true,
    ...names,
  } as const;
  await build({
    input,
    platform: 'node',
    logLevel: 'warn',
    plugins: [textsInside, forgetful, ascii],
    output,
  });
}

/** V8 keeps a text with one other character at two bytes for each. Outside of strings and patterns there are none. */
const ascii: Plugin = {
  name: 'ascii',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type === 'chunk') chunk.code = chunk.code.replaceAll(/[^\0-\x7F]/g, escaped);
    }
  },
};

const YAML = /\/node_modules\/yaml\/|\/src\/util\/yaml\.ts$/;

/**
 * An agent reads YAML only once, at its start. If nothing else has loaded the parser, this plugin makes Node forget the
 * parser afterwards. The parser is the largest file of all.
 */
const forgetful: Plugin = {
  name: 'forgetful',
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((output) => output.type === 'chunk');
    const parser = chunks
      .filter(({ moduleIds }) => moduleIds.some((id) => YAML.test(id)))
      .map((chunk) => chunk.fileName);
    for (const chunk of chunks) {
      chunk.code = chunk.code.replace(
        /(?<=then\(\(\)=>)require\("\.\/([^"]+)"\)/g,
        (load: string, name: string) => (parser.includes(name) ? forgetting(load, parser) : load),
      );
    }
  },
};

/**
 * Returns code that loads the chunk and then removes the parser from the cache of `require`. In a single executable
 * application, `require` has no cache.
 */
function forgetting(load: string, names: readonly string[]): string {
  const paths = `${JSON.stringify(names)}.map(n=>__dirname+"/"+n)`;
  const forget = `for(const p of o)delete require.cache[p];module.children=module.children.filter(c=>!o.includes(c.id))`;
  return `{const c=require.cache,o=c?${paths}.filter(p=>!c[p]):[],r=${load};if(c){${forget}}return r}`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Returns the lowest major version of Node.js that package.json allows. */
async function leastMajor(): Promise<number> {
  const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  return Number(/^>=(\d+)$/.exec(engines.node)?.[1]);
}
