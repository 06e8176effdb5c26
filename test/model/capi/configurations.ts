/** The plans of Cluster API that are explored: the small ones in every test run, and the large ones in the second tier. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { countOfFallible, qualitiesOf } from '../works/configurations.ts';
import type { CapiConfiguration, CapiMove } from './capi-objects.ts';

type Options = Partial<Omit<CapiConfiguration, 'name' | 'nodes'>>;

const TOLD: Readonly<Record<CapiMove, string>> = {
  hour: 'an hour passes',
  pause: 'a pause',
  meddle: 'a kubelet removes the pause',
  retry: 'a person retries a failed Machine',
  again: 'a person removes a failed request',
  approve: 'a person approves the second wave',
  delete: 'Cluster API deletes the first Machine',
  cordon: 'a person cordons a Node',
  restart: 'the leader restarts',
  lag: 'a leader sees old Nodes',
};

/** Parses Nodes such as `a b:bad`. Each update of a Machine whose Node has `:bad` may fail. */
export function configureCapi(nodes: string, options: Options = {}): CapiConfiguration {
  const configuration: Omit<CapiConfiguration, 'name'> = {
    nodes: qualitiesOf(nodes),
    role: 'worker',
    hasOwner: true,
    maxUnavailable: 1,
    maxFailures: 0,
    moves: [],
    ...options,
  };
  const { role, hasOwner, maxUnavailable, maxFailures, waves, moves } = configuration;
  const count = Object.keys(configuration.nodes).length;
  const noun = `${role}${count === 1 ? '' : 's'}`;
  const parts = [
    countOfFallible(configuration.nodes, noun),
    ...(hasOwner ? [] : ['each Machine is a plan']),
    ...(maxUnavailable > 1 ? [`${maxUnavailable} at once`] : []),
    ...(maxFailures > 0 ? [`${maxFailures} failure allowed`] : []),
    ...(waves === undefined ? [] : [`waves ${waves === 'approved' ? 'with an approval' : waves}`]),
    ...moves.map((move) => TOLD[move]),
  ];
  return { ...configuration, name: parts.join(', ') };
}

export const CAPI_CONFIGURATIONS: readonly CapiConfiguration[] = [
  configureCapi('a', { hasOwner: false, moves: ['hour', 'pause'] }),
  configureCapi('a b', { role: 'controller', hasOwner: false, maxUnavailable: 2 }),
  configureCapi('a b', { moves: ['cordon'] }),
  configureCapi('a b', { maxUnavailable: 2, moves: ['restart'] }),
  configureCapi('a b', { role: 'controller', maxUnavailable: 2, moves: ['hour'] }),
  configureCapi('a b', { role: 'controller', maxUnavailable: 2, moves: ['lag'] }),
  configureCapi('a b', { waves: 'in turn', maxUnavailable: 2, moves: ['pause', 'delete'] }),
  configureCapi('a b', { maxUnavailable: 2, moves: ['pause', 'meddle'] }),
  configureCapi('a b', { waves: 'approved', maxUnavailable: 2, moves: ['approve'] }),
  configureCapi('a:bad b', { waves: 'in turn', moves: ['hour', 'retry'] }),
  configureCapi('a:bad b', { role: 'controller', maxUnavailable: 2, moves: ['again', 'delete'] }),
  configureCapi('a:bad b', { maxFailures: 1, moves: ['again'] }),
  configureCapi('a b c'),
];

export const LARGE_CAPI_CONFIGURATIONS: readonly CapiConfiguration[] = [
  configureCapi('a b', { moves: ['hour', 'cordon'] }),
  configureCapi('a b', { maxUnavailable: 2, moves: ['hour'] }),
  configureCapi('a b c', { waves: 'in turn', maxUnavailable: 2 }),
  configureCapi('a b c', { waves: 'approved', maxUnavailable: 2, moves: ['approve', 'delete'] }),
  configureCapi('a b c', { maxUnavailable: 2, moves: ['delete'] }),
  configureCapi('a:bad b', { waves: 'in turn', maxUnavailable: 2, moves: ['hour', 'retry'] }),
  configureCapi('a:bad b', {
    waves: 'in turn',
    maxUnavailable: 2,
    moves: ['pause', 'again', 'delete'],
  }),
  configureCapi('a:bad b', {
    role: 'controller',
    maxUnavailable: 2,
    maxFailures: 1,
    moves: ['hour', 'delete', 'retry'],
  }),
  configureCapi('a b', { role: 'controller', maxUnavailable: 2, moves: ['lag', 'delete'] }),
  configureCapi('a b', { waves: 'in turn', maxUnavailable: 2, moves: ['lag', 'pause'] }),
  configureCapi('a:bad b', { role: 'controller', maxUnavailable: 2, moves: ['lag', 'again'] }),
];

export const CAPI_HEAD = ['| Machines of Cluster API | states | transitions |', '|---|---|---|'];

export function capiRow({ name }: CapiConfiguration, { states, transitions }: Exploration): string {
  return row(name, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
