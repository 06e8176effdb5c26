/** The rollouts of works (Jobs, or work elsewhere) that every test run explores. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { ELSEWHERE, JOBS, type WorkFamily } from './families.ts';
import type { WorkConfiguration } from './works-world.ts';

export interface NamedWorkConfiguration extends WorkConfiguration {
  readonly name: string;
}

export type Qualities = Readonly<Record<string, 'good' | 'bad'>>;

/** Parses targets such as `a b:bad`. The work on a target with `:bad` fails. */
export function qualitiesOf(targets: string): Qualities {
  const named = targets.split(' ').map((text): [string, 'good' | 'bad'] => {
    const [name = '', bad] = text.split(':');
    return [name, bad === undefined ? 'good' : 'bad'];
  });
  return Object.fromEntries(named);
}

/** Describes the number of targets in the name of a configuration. */
export function countOf(qualities: Qualities, noun: string): string {
  return counted(qualities, noun, ['fails', 'fail']);
}

/** Returns the number of targets, and how many of them fail if a move lets them fail. */
export function countOfFallible(qualities: Qualities, noun: string): string {
  return counted(qualities, noun, ['may fail', 'may fail']);
}

function counted(
  qualities: Qualities,
  noun: string,
  [one, many]: readonly [one: string, many: string],
): string {
  const all = Object.values(qualities);
  const bad = all.filter((quality) => quality === 'bad').length;
  return `${all.length} ${noun}${bad === 0 ? '' : `, ${bad} of them ${bad === 1 ? one : many}`}`;
}

export function configureWorks(
  family: WorkFamily,
  targets: string,
  slots: number,
  faults = 1,
): NamedWorkConfiguration {
  const qualities = qualitiesOf(targets);
  const name = `${family.name}: ${countOf(qualities, 'targets')}, ${slots} at once`;
  return { name, family, targets: qualities, slots, faults };
}

export const WORK_CONFIGURATIONS: readonly NamedWorkConfiguration[] = [
  configureWorks(JOBS, 'a b c', 1),
  configureWorks(JOBS, 'a b c', 2, 0),
  configureWorks(JOBS, 'a b:bad c', 2, 0),
  configureWorks(JOBS, 'a:bad b', 1),
  configureWorks(ELSEWHERE, 'a b c', 1),
  configureWorks(ELSEWHERE, 'a b c', 2, 0),
  configureWorks(ELSEWHERE, 'a b:bad c', 2, 0),
];

export const WORK_HEAD = ['| work | faults | states | transitions |', '|---|---|---|---|'];

export function workRow(
  { name, faults }: NamedWorkConfiguration,
  { states, transitions }: Exploration,
): string {
  return row(name, faults, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
