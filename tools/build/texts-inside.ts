/** Puts texts into the built program. They replace the modules that read these texts in the source tree. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { buildUi } from './ui.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** The modules that read files. The function of each module takes the name of a file below the folder. */
const READERS = [
  {
    module: join(ROOT, 'src', 'install', 'deploy-files.ts'),
    name: 'deployFile',
    folder: join(ROOT, 'deploy'),
    files: ['chart/manifests/{base,k0s,cattle,capi}/*.yaml', 'host/refit-agent.*', 'rbac*.yaml'],
  },
  {
    module: join(ROOT, 'src/dialects/kubeadm/host/script-file.ts'),
    name: 'scriptFile',
    folder: join(ROOT, 'src/dialects/kubeadm/host/scripts'),
    files: ['*.sh', 'parts/*.sh'],
  },
];

/** The module with the built user interface. In a checkout, it builds the user interface when a command needs it. */
const UI = join(ROOT, 'src', 'cli', 'dashboard', 'bundle.ts');

/** The module with the program of the worker thread that reads texts of viewers. */
const READER = join(ROOT, 'src', 'cli', 'preview', 'foreign', 'reader-program.ts');

export const textsInside: Plugin = {
  name: 'texts-inside',
  async load(id) {
    if (id === UI) return await uiInside();
    if (id === READER) return await readerInside();
    const reader = READERS.find(({ module }) => module === id);
    if (!reader) return null;
    const { name, folder } = reader;
    const names = globSync(reader.files, { cwd: folder }).toSorted();
    const texts = Object.fromEntries(
      names.map((file) => [file, readFileSync(join(folder, file), 'utf8')]),
    );
    return `const texts = ${JSON.stringify(texts)};\nexport const ${name} = (file) => texts[file];\n`;
  },
};

async function uiInside(): Promise<string> {
  const folder = await buildUi();
  const [script, style] = ['ui.js', 'ui.css'].map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  return `export const uiFiles = async () => (${JSON.stringify({ script, style })});\n`;
}

async function readerInside(): Promise<string> {
  const program = JSON.stringify(await readerProgramText());
  return `export const readerProgram = () => ({ program: ${program}, isText: true });\n`;
}

/** Resolves with the program as one text, because a worker thread of the one-file binary cannot load chunks. */
export async function readerProgramText(): Promise<string> {
  const { output } = await build({
    input: join(ROOT, 'src', 'cli', 'preview', 'foreign', 'reader-worker.ts'),
    platform: 'node',
    logLevel: 'warn',
    write: false,
    output: { format: 'cjs', minify: true, codeSplitting: false },
  });
  return output[0].code;
}
