/** Checks who may import whom: layers, cycles, and what the agent may reach. */
import type { Import, SourceFile } from './tree.ts';

const CORE = ['engine', 'runtime', 'api', 'signal', 'drain', 'versions', 'kube', 'http', 'util'];

/** What each folder of src/ may import beside itself. `agent` gets the least, because it ships as one file. */
export const BELOW: Readonly<Record<string, readonly string[]>> = {
  cmd: ['cli', 'dialects', 'install', 'agent', 'process', 'updates', 'kubeadm', ...CORE],
  install: ['agent', 'api', 'kube', 'signal', 'util'],
  cli: ['dialects', 'process', 'updates', 'kubeadm', ...CORE],
  process: CORE,
  dialects: ['kubeadm', ...CORE],
  updates: CORE,
  engine: ['runtime', 'api', 'signal', 'drain', 'versions', 'kube', 'util'],
  runtime: ['api', 'kube', 'util'],
  api: ['signal', 'kube', 'util'],
  agent: ['kubeadm', 'signal', 'drain', 'kube', 'http', 'versions', 'util'],
  kubeadm: ['versions', 'kube', 'util'],
  drain: ['kube', 'util'],
  versions: ['util'],
  signal: ['kube', 'util'],
  kube: ['http', 'util'],
  http: ['util'],
  util: [],
};

/** The same for the folders at the top. No product code may import the sandbox, the tools or a test. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  src: [],
  tools: ['src'],
  sandbox: ['src', 'tools'],
  test: ['src', 'tools', 'sandbox'],
  bench: ['src', 'tools', 'sandbox', 'test'],
};

/** Imports that point upward or sideways, each as one line. */
export function upwardImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const [top, layer] = placeOf(path);
    if (BESIDE[top] === undefined) return [`${path}: ${top} is no layer`];
    if (top === 'src' && BELOW[layer] === undefined) return [`${path}: ${layer} is no layer`];
    return pathsOf(imports)
      .filter((to) => !mayImport(top, layer, to))
      .map((to) => `${path} imports ${to}`);
  });
}

function mayImport(top: string, layer: string, to: string): boolean {
  // The version is written there.
  if (to === 'package.json') return true;
  const [toTop, toLayer] = placeOf(to);
  if (toTop !== top) return BESIDE[top]?.includes(toTop) === true;
  return top !== 'src' || toLayer === layer || BELOW[layer]?.includes(toLayer) === true;
}

/** The folder at the top and the one below it. */
function placeOf(path: string): [string, string] {
  const [top = '', layer = ''] = path.split('/');
  return [top, layer];
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

const READERS = ['src/kube/config/kubeconfig', 'src/util/yaml.ts'];

/** The npm packages that the agent would load, with the file that imports each. Only the readers of the kubeconfig and of YAML may load YAML. */
export function packagesOfAgent(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set(files.filter(({ path }) => path.startsWith('src/agent/')));
  // Iterating a set includes what is added meanwhile: this ends when nothing new is reached.
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

/** Packages that src/ imports but `dependencies` lacks: an installed Refit would not find them. */
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
