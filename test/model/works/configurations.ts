/** Owns the campaigns of works that are explored in every test run. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { ELSEWHERE, JOBS, type WorkFamily } from './families.ts';
import type { WorkConfiguration } from './works-world.ts';

export interface NamedWorkConfiguration extends WorkConfiguration {
  readonly name: string;
}

/** `a b:bad`: targets, and those whose work comes to nothing. */
export function configureWorks(family: WorkFamily, targets: string, slots: number, faults = 1): NamedWorkConfiguration {
  const named = targets.split(' ').map((text): [string, 'good' | 'bad'] => {
    const [name = '', bad] = text.split(':');
    return [name, bad === undefined ? 'good' : 'bad'];
  });
  const bad = named.filter(([, quality]) => quality === 'bad').length;
  const fails = bad === 0 ? '' : `, ${bad} ${bad === 1 ? 'fails' : 'fail'}`;
  const name = `${family.name}: ${named.length} targets${fails}, ${slots} at once`;
  return { name, family, targets: Object.fromEntries(named), slots, faults };
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

export function workRow({ name, faults }: NamedWorkConfiguration, { states, transitions }: Exploration): string {
  return row(name, faults, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
