/** Owns the rules of who may import whom: layers, cycles, and what the agent may reach. */
import type { Import, SourceFile } from './tree.ts';

const CORE = ['engine', 'runtime', 'api', 'signal', 'drain', 'versions', 'kube', 'util'];

/**
 * What each folder of src/ may import beside itself: only what lies below it. `agent` is kept to the least, since it
 * ships as one file; `sandbox` serves tests and tools, and so stands in no list.
 */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  cmd: ['cli', 'dialects', 'agent', ...CORE],
  cli: ['dialects', ...CORE],
  dialects: CORE,
  engine: ['runtime', 'api', 'signal', 'drain', 'kube', 'util'],
  runtime: ['api', 'kube', 'util'],
  api: ['signal', 'kube', 'util'],
  agent: ['signal', 'drain', 'kube', 'util'],
  drain: ['kube', 'util'],
  versions: ['util'],
  signal: ['kube', 'util'],
  kube: ['util'],
  util: [],
  sandbox: ['kube', 'util'],
};

/** Imports that point upward, sideways or out of src/, each as one line. */
export function upwardImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = layerOf(path);
    const below = BELOW[from];
    if (below === undefined) return [`${path}: ${from} is no layer`];
    return (
      imports
        .flatMap((it) => it.path ?? [])
        .filter((to) => !to.startsWith(`src/${from}/`) && !(to.startsWith('src/') && below.includes(layerOf(to))))
        // Where the version is written.
        .filter((to) => to !== 'package.json')
        .map((to) => `${path} imports ${to}`)
    );
  });
}

function layerOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** Every chain of imports that leads back to its start; types count, since they too must be read in some order. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const graph = new Map(files.map((file) => [file.path, pathsOf(file.imports)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const seenAt = trail.indexOf(path);
    if (seenAt >= 0) cycles.push([...trail.slice(seenAt), path].join(' → '));
    if (seenAt >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}

/** The npm packages that the agent would load, with the file that asks; a reader of kubeconfigs may have its YAML. */
export function packagesOfAgent(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set(files.filter(({ path }) => path.startsWith('src/agent/')));
  // A set hands out what is added while it is walked: this ends when nothing new is reached.
  for (const { imports } of reached) {
    for (const path of pathsOf(loaded(imports))) {
      const next = byPath.get(path);
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached].flatMap(({ path, imports }) =>
    packagesOf(loaded(imports))
      .filter((name) => !(name === 'yaml' && path.startsWith('src/kube/config/kubeconfig')))
      .map((name) => `${path} imports ${name}`),
  );
}

/** Packages that src/ imports without being in `dependencies`: they would be missing where Refit is installed. */
export function undeclaredPackages(files: readonly SourceFile[], dependencies: readonly string[]): string[] {
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
  return imports.map(({ specifier }) => specifier).filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
}
