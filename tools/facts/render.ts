/** Writes the file with the facts of a minor version. */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  COMPONENTS,
  type Component,
  type FeatureGate,
  type GateState,
  type Lifecycle,
} from '../../src/versions/minor-facts.ts';
import { moduleOf, TOOLS } from './minors.ts';
import type { SourceFacts } from './read.ts';

const WIDTH = 116;
const NO_DIGEST = "digest: '',";

/** Returns the path of the file, from the root of the repository. */
export function pathOf(minor: number): string {
  return `src/versions/data/1.${minor}.ts`;
}

/** Returns the text of the file. */
export function render(minor: number, sources: SourceFacts): string {
  const { release } = moduleOf(minor);
  const { kubeadm } = sources;
  const { etcd = '', externalEtcd = '', formats = [], kernels = [] } = kubeadm.more ?? {};
  const { gates, unknownTo } = mergedGates(sources);
  const { apis, lifecycles } = servedApis(sources);
  const text = `/** The facts of Kubernetes 1.${minor}. \`npm run generate -- minor 1.${minor}\` wrote this file from the sources of ${release}. */
import type { WrittenFacts } from '../minor-facts.ts';

export const FACTS_${minor}: WrittenFacts = {
  minor: ${minor},
  release: '${release}',
  ${NO_DIGEST}
  etcd: '${withoutRevision(etcd)}',
  externalEtcd: '${withoutRevision(externalEtcd)}',
  kubeadmFormats: ${list(formats)},
  kubeadmGates: ${record(gatesByState(kubeadm.gates))},
  kernels: ${list(kernels)},
  gates: ${record(gatesByState(gates))},
  gatesUnknownTo: ${record(unknownTo)},
  flags: ${record(COMPONENTS.map((name) => [name, sources.components[name].flags ?? []]))},
  apis: ${record(apis)},
  lifecycles: ${lifecycleRows(lifecycles)},
};
`;
  return text.replace(NO_DIGEST, `digest: '${digestOf(minor, text)}',`);
}

/**
 * Returns the digest of a file with facts. It depends on the text, on the sources of Kubernetes and on the programs
 * that read them, so that a test without Go notices a change to one of them.
 */
export function digestOf(minor: number, text: string): string {
  const hash = createHash('sha256');
  const { module, checksum } = moduleOf(minor);
  hash.update(`${module}\n${checksum}\n${text.replace(/^ {2}digest: '.*',$/m, `  ${NO_DIGEST}`)}`);
  for (const file of globSync('facts/program/*.go', { cwd: TOOLS }).toSorted())
    hash.update(readFileSync(join(TOOLS, file)));
  return hash.digest('hex').slice(0, 16);
}

/** Removes the revision of an image tag, such as `-0` in `3.6.4-0`. */
function withoutRevision(tag: string): string {
  return tag.replace(/-\d+$/, '');
}

interface MergedGates {
  readonly gates: Readonly<Record<string, FeatureGate>>;
  readonly unknownTo: readonly (readonly [Component, readonly string[]])[];
}

/**
 * Returns the gates of all components together. Throws if the lock of a gate differs between two components. A gate that
 * is not locked may have other defaults in some components; then the default of the first component counts.
 */
function mergedGates({ components }: SourceFacts): MergedGates {
  const gates: Record<string, FeatureGate> = {};
  for (const name of COMPONENTS)
    for (const [gate, found] of Object.entries(components[name].gates)) {
      const known = gates[gate] ?? found;
      gates[gate] = known;
      const isOther = known.locked && known.default !== found.default;
      if (known.locked !== found.locked || isOther)
        throw new Error(
          `the lock of the feature gate ${gate} of ${name} differs from that of another component`,
        );
    }
  const unknownTo = COMPONENTS.map(
    (name) =>
      [name, Object.keys(gates).filter((gate) => !(gate in components[name].gates))] as const,
  );
  return { gates, unknownTo: unknownTo.filter(([, names]) => names.length > 0) };
}

type Rows = readonly (readonly [string, readonly string[]])[];

const STAGES = ['GA', 'BETA', 'ALPHA', 'DEPRECATED'] as const;
const STATES: readonly GateState[] = STAGES.flatMap((stage) =>
  (['on locked', 'off locked', 'on', 'off'] as const).map((rest) => `${stage} ${rest}` as const),
);

function gatesByState(gates: Readonly<Record<string, FeatureGate>>): Rows {
  const rows = STATES.map((state) => {
    const names = Object.entries(gates).filter(([, gate]) => stateOf(gate) === state);
    return [state, names.map(([name]) => name)] as const;
  });
  return rows.filter(([, names]) => names.length > 0);
}

function stateOf({ stage, default: value, locked }: FeatureGate): GateState {
  return `${stage} ${value ? 'on' : 'off'}${locked ? ' locked' : ''}`;
}

/** Returns the kinds that objects can have, which are those that the API server lists, and their lifecycles. */
function servedApis({ discovery, lifecycles }: SourceFacts) {
  const apis = discovery.items.flatMap(({ metadata: { name: group }, versions }) =>
    versions.map(({ version, resources }) => {
      const listed = resources.filter(({ verbs }) => verbs.includes('list'));
      const kinds = listed.map(({ responseKind: { kind } }) => kind);
      return [`${group}/${version}`, [...new Set(kinds)]] as const;
    }),
  );
  const served = new Set(apis.flatMap(([of, kinds]) => kinds.map((kind) => `${of} ${kind}`)));
  const rows = lifecycles.map(
    ({ group, version, kind, ...lifecycle }) => [`${group}/${version} ${kind}`, lifecycle] as const,
  );
  return {
    apis: apis.filter(([, kinds]) => kinds.length > 0).toSorted(byName),
    lifecycles: rows.filter(([name]) => served.has(name)).toSorted(byName),
  };
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : Number(one > other);
}

function lifecycleRows(rows: readonly (readonly [string, Lifecycle])[]): string {
  const lines = rows.map(([name, { deprecated, removed, replacement }]) => {
    const members = [
      ...(deprecated === undefined ? [] : [`deprecated: ${deprecated}`]),
      ...(removed === undefined ? [] : [`removed: ${removed}`]),
      ...(replacement === undefined ? [] : [`replacement: '${replacement.split(' ')[0]}'`]),
    ];
    return `    '${name}': { ${members.join(', ')} },\n`;
  });
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}  }`;
}

function record(rows: Rows): string {
  const lines = rows.map(([name, words]) => `    '${name}': \`\n${wrapped(words)}    \`,\n`);
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}  }`;
}

/** Returns the words in alphabetical order, in lines. */
function wrapped(words: readonly string[]): string {
  let lines = '';
  let line = '     ';
  for (const word of words.toSorted()) {
    if (line.length + word.length >= WIDTH) {
      lines += `${line}\n`;
      line = '     ';
    }
    line += ` ${word}`;
  }
  return `${lines}${line}\n`;
}

function list(texts: readonly string[]): string {
  return `[${texts.map((text) => `'${text.replaceAll('\\', '\\\\')}'`).join(', ')}]`;
}
