/** The plans with status shards to explore: the small ones in every test run, the large ones on demand. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { countOf, qualitiesOf } from '../works/configurations.ts';
import type { ShardConfiguration } from './shards-world.ts';

export interface NamedShardConfiguration extends ShardConfiguration {
  readonly name: string;
}

export function configureShards(
  targets: string,
  slots: number,
  faults: number,
  leaders = 2,
): NamedShardConfiguration {
  const workers = qualitiesOf(targets);
  const name = `${countOf(workers, 'workers')}, ${slots} at once, ${leaders} leaders`;
  return { name, workers, slots, faults, leaders };
}

export const SHARD_CONFIGURATIONS: readonly NamedShardConfiguration[] = [
  configureShards('w1 w2', 1, 1),
  configureShards('w1 w2', 2, 1),
  configureShards('w1 w2', 2, 0, 3),
  configureShards('w1 w2:bad', 2, 0),
  configureShards('w1 w2 w3', 1, 0),
];

/** Explored by `npm run safety` alone. */
export const LARGE_SHARD_CONFIGURATIONS: readonly NamedShardConfiguration[] = [
  configureShards('w1 w2 w3', 1, 1),
  configureShards('w1 w2 w3', 2, 1),
  configureShards('w1 w2:bad w3', 2, 0),
];

export const SHARD_HEAD = [
  '| plan with status shards | faults | states | transitions |',
  '|---|---|---|---|',
];

export function shardRow(
  { name, faults }: NamedShardConfiguration,
  { states, transitions }: Exploration,
): string {
  return row(name, faults, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
