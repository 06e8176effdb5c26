/** Checks which files may import which: layers, cycles, and what the agent may load. */
import { type Import, isTest, type SourceFile } from './tree.ts';

const BELOW_ENGINE = [
  'runtime',
  'api',
  'signal',
  'coordination',
  'drain',
  'health',
  'hooks',
  'notify',
  'ready',
  'silences',
  'traces',
  'versions',
  'kube',
  'util',
];
const CORE = ['engine', 'http', ...BELOW_ENGINE];
const HOST = ['dialects/*/host', 'versions', 'kube', 'util'];
const AGENT = ['agent', 'signal', 'drain', 'http', ...HOST];
const PLAN = ['dialects/*/host', 'dialects/shared', ...CORE];

/**
 * The folders that each folder of src/ may import in addition to itself. The agent may import the fewest folders,
 * because it ships as one file. `dialects/*` means the files beside the folders of a product: its module, and what the
 * module loads. In a product's folder, it means only the folder of this product, because products must not depend on each
 * other.
 */
export const BELOW: Readonly<Record<string, readonly string[]>> = {
  cmd: ['cli', 'cli/contract', 'dialects', 'install', 'agent', 'composition', 'updates', ...CORE],
  install: ['agent', 'api', 'kube', 'signal', 'util'],
  'dialects/*': [
    'cli/contract',
    'dialects/*/command',
    'dialects/*/host',
    'dialects/*/plan',
    'dialects/shared',
    ...CORE,
  ],
  'dialects/*/command': [
    'cli',
    'cli/contract',
    'dialects/*',
    'composition',
    'install',
    'updates',
    'dialects/*/hooks',
    'dialects/*/plan',
    ...PLAN,
  ],
  cli: ['cli/contract', 'composition', 'updates', ...CORE],
  'cli/contract': ['cli', ...CORE],
  composition: ['agent', ...CORE],
  dialects: [
    'agent',
    'cli/contract',
    'dialects/*',
    'dialects/*/agent',
    'dialects/*/command',
    ...CORE,
  ],
  'dialects/*/hooks': ['dialects/*/plan', ...PLAN],
  'dialects/*/plan': PLAN,
  'dialects/shared': ['cli/contract', ...CORE],
  'dialects/*/agent': AGENT,
  'dialects/*/host': HOST,
  updates: CORE,
  engine: BELOW_ENGINE,
  runtime: ['api', 'kube', 'util'],
  api: ['signal', 'kube', 'util'],
  agent: ['signal', 'drain', 'kube', 'http', 'versions', 'util'],
  coordination: ['kube', 'util'],
  drain: ['kube', 'util'],
  health: ['kube', 'http', 'util'],
  hooks: ['drain', 'kube', 'http', 'util'],
  notify: ['kube', 'http', 'util'],
  ready: ['drain', 'health', 'versions', 'kube', 'util'],
  silences: ['health', 'util'],
  traces: ['http', 'util'],
  versions: ['util'],
  signal: ['kube', 'util'],
  kube: ['http', 'util'],
  http: ['util'],
  util: [],
};

/**
 * For each folder at the top of the repository, the other top folders that it may import. No product code may import
 * the sandbox, the tools or a test.
 */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  src: [],
  ui: [],
  tools: ['src'],
  sandbox: ['src', 'tools'],
  test: ['src', 'tools', 'sandbox'],
  bench: ['src', 'tools', 'sandbox', 'test'],
};

/** Returns the imports from a layer that the importing file may not use, each as one line. */
export function upwardImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = placeOf(path);
    if (BESIDE[from.top] === undefined) return [`${path}: ${from.top} is no layer`];
    if (from.top === 'src' && BELOW[from.layer] === undefined)
      return [`${path}: ${from.layer} is no layer`];
    return pathsOf(imports)
      .filter((to) => !mayImport(from, to) && !(isTest({ path }) && mayImport(TESTS, to)))
      .map((to) => `${path} imports ${to}`);
  });
}

/** A test in another folder may import what the tests in `test/` may, and what is beside it. */
const TESTS: Place = { top: 'test', layer: '' };

function mayImport(from: Place, path: string): boolean {
  // Every file may import package.json, which contains the version of Refit.
  if (path === 'package.json') return true;
  const to = placeOf(path);
  // The page and the server share the type of the state. The next test checks that the page imports only types.
  if (from.top === 'ui' && path === 'src/cli/dashboard/state.ts') return true;
  if (to.top !== from.top) return BESIDE[from.top]?.includes(to.top) === true;
  if (from.top !== 'src') return true;
  if (from.product !== undefined && to.product !== undefined && from.product !== to.product)
    return false;
  return to.layer === from.layer || BELOW[from.layer]?.includes(to.layer) === true;
}

/**
 * The folders of the engine in the order in which one turn uses them. The table of the architecture page has the same
 * order.
 */
export const ENGINE_ORDER = [
  'contract',
  'model',
  'policy',
  'reasons',
  'snapshot',
  'gates',
  'schedule',
  'assess',
  'turn',
  'explain',
  'execute',
  'report',
] as const;

type EngineFolder = (typeof ENGINE_ORDER)[number];

/** The later folders that a folder of the engine may import as an exception. */
const ENGINE_EXCEPTIONS: Readonly<Partial<Record<EngineFolder, readonly EngineFolder[]>>> = {
  contract: ['model', 'policy'],
  model: ['policy'],
  snapshot: ['gates', 'schedule'],
  execute: ['report'],
};

/** Returns the imports from a folder of the engine to a folder that is used later in a turn, one import per line. */
export function importsAgainstTurn(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = engineFolderOf(path);
    if (from === undefined) return [];
    const isEarly = (folder: EngineFolder): boolean =>
      ENGINE_ORDER.indexOf(folder) <= ENGINE_ORDER.indexOf(from) ||
      ENGINE_EXCEPTIONS[from]?.includes(folder) === true;
    return pathsOf(imports)
      .filter((to) => {
        const folder = engineFolderOf(to);
        return folder !== undefined && !isEarly(folder);
      })
      .map((to) => `${path} imports ${to}`);
  });
}

/** Returns the folder of the engine that the file is in; undefined for a file elsewhere. */
function engineFolderOf(path: string): EngineFolder | undefined {
  return ENGINE_ORDER.find((folder) => path.startsWith(`src/engine/${folder}/`));
}

/** The commands that show plans. They show the reading of a plan, so they compute nothing about it themselves. */
const SHOWS_READINGS = ['why', 'dashboard', 'report', 'history', 'status'];
/** The folders of the engine that decide. */
const DECIDES = ['assess', 'gates', 'schedule'];

/** Returns the imports of deciding code by a command that only shows the reading of a plan, one import per line. */
export function importsBesideReading(files: readonly SourceFile[]): string[] {
  const isIn = (path: string, folder: string, names: readonly string[]): boolean =>
    names.some((name) => path.startsWith(`${folder}/${name}/`));
  return files
    .filter(({ path }) => isIn(path, 'src/cli', SHOWS_READINGS))
    .flatMap(({ path, imports }) =>
      pathsOf(imports)
        .filter((to) => isIn(to, 'src/engine', DECIDES))
        .map((to) => `${path} imports ${to}`),
    );
}

interface Place {
  /** The folder at the top of the repository. */
  readonly top: string;
  /** A key of `BELOW`. */
  readonly layer: string;
  /** The product in whose folder the file is; undefined if the file is in no such folder. */
  readonly product?: string;
}

function placeOf(path: string): Place {
  const [top = '', layer = '', product, inner, file] = path.split('/');
  if (path.startsWith('src/cli/contract/')) return { top, layer: 'cli/contract' };
  if (top !== 'src' || layer !== 'dialects' || product === undefined) return { top, layer };
  if (product === 'shared') return { top, layer: 'dialects/shared' };
  if (inner === undefined) return { top, layer };
  // The files beside the folders of a product are its module and what the module loads.
  if (file === undefined) return { top, layer: 'dialects/*', product };
  return { top, layer: `dialects/*/${inner}`, product };
}

/** Returns the files that are loaded at once when a program loads `path`, without those that it loads later by `import()`. */
export function loadedWith(path: string, files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set([path]);
  // The iteration of a set includes the elements that are added during the iteration.
  for (const each of reached) {
    const { imports = [] } = byPath.get(each) ?? {};
    for (const next of pathsOf(loaded(imports).filter(({ isLate }) => !isLate))) reached.add(next);
  }
  return [...reached].filter((each) => each !== path);
}

/** Returns the lines of the CLI that quote the name of a dialect. The CLI must ask the module of the dialect instead. */
export function quotedDialects(files: readonly SourceFile[], names: readonly string[]): string[] {
  const quoted = new RegExp(`['"](?:${names.join('|')})['"]`);
  return files
    .filter(({ path }) => path.startsWith('src/cli/'))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line) => (quoted.test(line) ? [`${path}: ${line.trim()}`] : [])),
    );
}

/** Returns the files of the contract of the CLI that contain more than types. */
export function valuesInContract(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.startsWith('src/cli/contract/'))
    .filter(
      ({ text, imports }) =>
        loaded(imports).length > 0 || /^export (?:const|let|function|async|class)\b/m.test(text),
    )
    .map(({ path }) => path);
}

/** Every chain of imports that leads back to its start. Imports of types count too. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const graph = new Map(files.map((file) => [file.path, pathsOf(file.imports)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push([...trail.slice(start), path].join(' → '));
    if (start >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}

const AGENT_FILES = ['src/agent/', 'src/composition/agent/'];
const READERS = ['src/kube/config/kubeconfig', 'src/util/yaml.ts'];

/**
 * Returns the npm packages that the agent would load, with the files that import them. Only the readers of the
 * kubeconfig and of YAML may load YAML.
 */
export function packagesOfAgent(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set(
    files.filter(({ path }) => AGENT_FILES.some((start) => path.startsWith(start))),
  );
  // The iteration of a set includes the elements that are added during the iteration. The loop therefore ends when it
  // reaches no new file.
  for (const { imports } of reached) {
    for (const path of pathsOf(loaded(imports))) {
      const next = byPath.get(path);
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached].flatMap(({ path, imports }) =>
    packagesOf(loaded(imports))
      .filter((name) => !(name === 'yaml' && READERS.some((reader) => path.startsWith(reader))))
      .map((name) => `${path} imports ${name}`),
  );
}

/**
 * Returns the packages that src/ imports but that are missing from `dependencies`. An installed Refit would not find
 * these packages.
 */
export function undeclaredPackages(
  files: readonly SourceFile[],
  dependencies: readonly string[],
): string[] {
  return files.flatMap(({ path, imports }) =>
    packagesOf(imports)
      .filter((name) => !dependencies.includes(name))
      .map((name) => `${path} imports ${name}`),
  );
}

function loaded(imports: readonly Import[]): Import[] {
  return imports.filter(({ typeOnly }) => !typeOnly);
}

function pathsOf(imports: readonly Import[]): string[] {
  return imports.flatMap(({ path }) => path ?? []);
}

function packagesOf(imports: readonly Import[]): string[] {
  return imports
    .map(({ specifier }) => specifier)
    .filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
}
