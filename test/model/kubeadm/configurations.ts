/** The runs of kubeadm that are explored: the small ones in every test run, and the large ones in the second tier. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { countOfFallible, qualitiesOf } from '../works/configurations.ts';
import { isController, type KubeadmConfiguration, type KubeadmMove } from './kubeadm-objects.ts';

type Options = Partial<Omit<KubeadmConfiguration, 'name' | 'hosts'>>;

const TOLD: Readonly<Record<KubeadmMove, string>> = {
  pause: 'pauses',
  abort: 'an abort',
  cordon: 'a person cordons a node',
  restart: 'the command is killed',
  again: 'the command runs again',
  back: 'a way back after it',
};

const KINDS: Readonly<Record<KubeadmConfiguration['kind'], readonly string[]>> = {
  patch: [],
  minor: ['a minor version'],
  'way back': ['a way back'],
};

/** Parses hosts such as `c1 w1 w2:bad`. The upgrade of a host with `:bad` may fail. */
export function configureKubeadm(hosts: string, options: Options = {}): KubeadmConfiguration {
  const configuration: Omit<KubeadmConfiguration, 'name'> = {
    hosts: qualitiesOf(hosts),
    concurrent: 1,
    kind: 'patch',
    renews: [],
    hasHook: false,
    moves: [],
    ...options,
  };
  const { concurrent, kind, renews, hasHook, moves } = configuration;
  const parts = [
    ...groupOf(configuration, true, 'controller'),
    ...groupOf(configuration, false, 'worker'),
    ...(concurrent > 1 ? [`${concurrent} at once`] : []),
    ...KINDS[kind],
    ...(renews.length > 0 ? [`new certificates for ${renews.length}`] : []),
    ...(hasHook ? ['a hook before the drain'] : []),
    ...moves.map((move) => TOLD[move]),
  ];
  return { ...configuration, name: parts.join(', ') };
}

function groupOf(
  { hosts }: Pick<KubeadmConfiguration, 'hosts'>,
  controllers: boolean,
  noun: string,
): readonly string[] {
  const group = Object.fromEntries(
    Object.entries(hosts).filter(([name]) => isController(name) === controllers),
  );
  const count = Object.keys(group).length;
  if (count === 0) return [];
  return [countOfFallible(group, count === 1 ? noun : `${noun}s`)];
}

export const KUBEADM_CONFIGURATIONS: readonly KubeadmConfiguration[] = [
  configureKubeadm('c1 w1', { moves: ['pause'] }),
  configureKubeadm('c1 w1', { moves: ['abort'] }),
  configureKubeadm('c1 c2', { kind: 'minor' }),
  configureKubeadm('c1 w1', { kind: 'way back' }),
  configureKubeadm('c1 c2', { renews: ['c1'] }),
  configureKubeadm('w1 w2', { concurrent: 2 }),
  configureKubeadm('w1:bad w2', { moves: ['again'] }),
  configureKubeadm('w1', { hasHook: true, moves: ['restart'] }),
  configureKubeadm('w1 w2', { moves: ['cordon'] }),
  configureKubeadm('w1:bad', { moves: ['abort', 'again'] }),
];

export const LARGE_KUBEADM_CONFIGURATIONS: readonly KubeadmConfiguration[] = [
  configureKubeadm('c1 c2 w1 w2', { concurrent: 2, moves: ['abort'] }),
  configureKubeadm('c1:bad c2 w1', { kind: 'minor', moves: ['restart', 'again'] }),
  configureKubeadm('c1:bad w1:bad', { kind: 'way back', moves: ['restart', 'again'] }),
  configureKubeadm('c1:bad w1', { moves: ['restart', 'again', 'back'] }),
  configureKubeadm('c1:bad c2:bad', { renews: ['c1', 'c2'], moves: ['restart', 'again', 'abort'] }),
  configureKubeadm('w1:bad', { moves: ['abort', 'cordon', 'restart', 'again'] }),
  configureKubeadm('w1:bad w2', { concurrent: 2, moves: ['restart', 'abort'] }),
  configureKubeadm('w1:bad w2', { concurrent: 2, hasHook: true, moves: ['restart'] }),
  configureKubeadm('w1 w2', { concurrent: 2, moves: ['pause', 'restart'] }),
  configureKubeadm('w1 w2 w3', { concurrent: 2, moves: ['pause'] }),
];

export const KUBEADM_HEAD = ['| run of kubeadm | states | transitions |', '|---|---|---|'];

export function kubeadmRow(
  { name }: KubeadmConfiguration,
  { states, transitions }: Exploration,
): string {
  return row(name, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
