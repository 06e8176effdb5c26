/** The Plans of Rancher that are explored: the small ones in every test run, and the large ones in the second tier. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { countOf, qualitiesOf } from '../works/configurations.ts';
import type { CattleConfiguration, CattleMove } from './cattle-objects.ts';

type Options = Partial<Omit<CattleConfiguration, 'name' | 'nodes'>>;

const TOLD: Readonly<Record<CattleMove, string>> = {
  edit: 'the version is edited',
  editBack: 'the version is restored',
  pause: 'pauses',
  abort: 'an abort',
  cordon: 'a person cordons a node',
  retry: 'a person deletes a failed Job',
  restart: 'the leader restarts',
};

/** Parses nodes such as `a b:bad`. Each Job on a node with `:bad` fails. */
export function configureCattle(nodes: string, options: Options = {}): CattleConfiguration {
  const configuration: Omit<CattleConfiguration, 'name'> = {
    nodes: qualitiesOf(nodes),
    concurrency: 1,
    drains: 'nobody',
    installsK3s: false,
    hasHook: false,
    moves: [],
    ...options,
  };
  const { concurrency, drains, installsK3s, hasHook, moves } = configuration;
  const count = Object.keys(configuration.nodes).length;
  const noun = count === 1 ? 'node' : 'nodes';
  const parts = [
    countOf(configuration.nodes, noun),
    ...(concurrency > 1 ? [`${concurrency} at once`] : []),
    ...(drains === 'nobody' ? [] : [`${drains} drains`]),
    ...(installsK3s ? ['K3s'] : []),
    ...(hasHook ? ['a hook before the drain'] : []),
    ...moves.map((move) => TOLD[move]),
  ];
  return { ...configuration, name: parts.join(', ') };
}

export const CATTLE_CONFIGURATIONS: readonly CattleConfiguration[] = [
  configureCattle('a', { moves: ['edit'] }),
  configureCattle('a b', { moves: ['pause'] }),
  configureCattle('a b', { drains: 'the leader', moves: ['abort'] }),
  configureCattle('a b:bad', { drains: 'the leader', moves: ['retry'] }),
  configureCattle('a b', { drains: 'the leader', installsK3s: true }),
  configureCattle('a b', { drains: 'the leader', hasHook: true, moves: ['restart'] }),
  configureCattle('a b', { drains: 'the Job', moves: ['cordon'] }),
  configureCattle('a', { drains: 'the leader', installsK3s: true, moves: ['cordon'] }),
];

export const LARGE_CATTLE_CONFIGURATIONS: readonly CattleConfiguration[] = [
  configureCattle('a b', { moves: ['edit'] }),
  configureCattle('a b', { concurrency: 2, drains: 'the leader' }),
  configureCattle('a b', { drains: 'the leader', installsK3s: true, moves: ['cordon'] }),
  configureCattle('a b', { hasHook: true, moves: ['edit'] }),
  configureCattle('a', { hasHook: true, installsK3s: true, moves: ['edit'] }),
  configureCattle('a b:bad', { drains: 'the Job', moves: ['edit', 'retry'] }),
  configureCattle('a', { drains: 'the leader', moves: ['edit', 'editBack'] }),
  configureCattle('a', { drains: 'the leader', moves: ['edit', 'abort', 'cordon'] }),
  configureCattle('a', { drains: 'the leader', moves: ['edit', 'pause', 'cordon'] }),
  configureCattle('a:bad', { drains: 'the leader', moves: ['edit', 'retry', 'restart'] }),
];

export const CATTLE_HEAD = ['| Plan of Rancher | states | transitions |', '|---|---|---|'];

export function cattleRow(
  { name }: CattleConfiguration,
  { states, transitions }: Exploration,
): string {
  return row(name, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
