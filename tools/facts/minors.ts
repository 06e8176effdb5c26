/** Lists the minor versions of Kubernetes whose facts are known, and the Go modules from which they are read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';

export const TOOLS = join(import.meta.dirname, '..');

/** The folders of the Go modules below `tools/`, by minor version. Each module has all components of Kubernetes. */
export const MODULES: ReadonlyMap<number, string> = new Map([
  [33, 'minors/v1.33/kube'],
  [34, 'proof/v1.34.4'],
  [35, 'proof/v1.35.4'],
  [36, 'proof/v1.36.3'],
  [37, 'minors/v1.37/kube'],
]);

/** Returns the minor version in a text such as `1.37`. Throws REFIT_USAGE if no Go module is known for it. */
export function minorOf(text: string): number {
  const minor = Number(/^v?1\.(\d+)$/.exec(text)?.[1]);
  if (MODULES.has(minor)) return minor;
  const known = [...MODULES.keys()].map((each) => `1.${each}`).join(', ');
  throw new RefitError(
    'REFIT_USAGE',
    `a minor version with a Go module in tools/facts/minors.ts (${known}) must follow "minor", found "${text}"; docs/internals/new-minor.md says how to add one`,
  );
}

export interface KubernetesModule {
  /** The folder below `tools/`. */
  readonly module: string;
  /** The release of Kubernetes that the module requires, such as `v1.37.2`. */
  readonly release: string;
  /** The checksum of its sources. */
  readonly checksum: string;
}

/** Returns the module of a minor version that `minorOf` returned. */
export function moduleOf(minor: number): KubernetesModule {
  const module = MODULES.get(minor) ?? '';
  const sums = readFileSync(join(TOOLS, module, 'go.sum'), 'utf8');
  const [, release = '', checksum = ''] =
    /^k8s\.io\/kubernetes (v1\.\d+\.\d+) (h1:\S+)$/m.exec(sums) ?? [];
  return { module, release, checksum };
}
