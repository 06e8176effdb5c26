/** The command behind `npm run safety`: explores every configuration and writes the tables of docs/internals/safety.md. */
import type { CattleConfiguration } from './cattle/cattle-objects.ts';
import { CattleWorld } from './cattle/cattle-world.ts';
import {
  CATTLE_CONFIGURATIONS,
  CATTLE_HEAD,
  cattleRow,
  LARGE_CATTLE_CONFIGURATIONS,
} from './cattle/configurations.ts';
import type { Configuration } from './cluster.ts';
import { CONFIGURATIONS } from './configurations.ts';
import { exploreConfiguration } from './explore-configuration.ts';
import { explore, printViolation } from './explorer.ts';
import { LARGE } from './large-configurations.ts';
import { counterexample, MISTAKES } from './mistakes.ts';
import {
  CONFIGURATION_HEAD,
  configurationRow,
  invariantRows,
  MISTAKE_HEAD,
  mistakeRow,
  withTable,
} from './safety-page.ts';
import { readPage, writePage } from './safety-page-file.ts';
import {
  LARGE_SHARD_CONFIGURATIONS,
  type NamedShardConfiguration,
  SHARD_CONFIGURATIONS,
  SHARD_HEAD,
  shardRow,
} from './status-shards/configurations.ts';
import { ShardsWorld } from './status-shards/shards-world.ts';
import { WORK_CONFIGURATIONS, WORK_HEAD, workRow } from './works/configurations.ts';
import { WorksWorld } from './works/works-world.ts';

async function configurationRows(configurations: readonly Configuration[]): Promise<string[]> {
  const rows = [...CONFIGURATION_HEAD];
  for (const configuration of configurations) {
    const exploration = await exploreConfiguration(configuration);
    if (exploration.violation)
      throw new Error(`${configuration.name}: ${printViolation(exploration.violation)}`);
    if (!exploration.isWhole)
      throw new Error(`${configuration.name}: more than ${exploration.states} states`);
    rows.push(configurationRow(configuration, exploration));
    console.log(rows.at(-1));
  }
  return rows;
}

async function mistakeRows(): Promise<string[]> {
  const rows = [...MISTAKE_HEAD];
  for (const mistake of MISTAKES) {
    const violation = await counterexample(mistake);
    if (!violation) throw new Error(`${mistake.name}: ${mistake.breaks} holds all the same`);
    rows.push(mistakeRow(mistake, violation));
    console.log(rows.at(-1));
  }
  return rows;
}

async function workRows(): Promise<string[]> {
  const rows = [...WORK_HEAD];
  for (const configuration of WORK_CONFIGURATIONS) {
    const exploration = await explore(new WorksWorld(configuration));
    if (exploration.violation)
      throw new Error(`${configuration.name}: ${printViolation(exploration.violation)}`);
    rows.push(workRow(configuration, exploration));
  }
  return rows;
}

async function shardRows(configurations: readonly NamedShardConfiguration[]): Promise<string[]> {
  const rows = [...SHARD_HEAD];
  for (const configuration of configurations) {
    const exploration = await explore(new ShardsWorld(configuration));
    if (exploration.violation)
      throw new Error(`${configuration.name}: ${printViolation(exploration.violation)}`);
    if (!exploration.isWhole)
      throw new Error(`${configuration.name}: more than ${exploration.states} states`);
    rows.push(shardRow(configuration, exploration));
    console.log(rows.at(-1));
  }
  return rows;
}

async function cattleRows(configurations: readonly CattleConfiguration[]): Promise<string[]> {
  const rows = [...CATTLE_HEAD];
  for (const configuration of configurations) {
    const exploration = await explore(new CattleWorld(configuration));
    if (exploration.violation)
      throw new Error(`${configuration.name}: ${printViolation(exploration.violation)}`);
    rows.push(cattleRow(configuration, exploration));
    console.log(rows.at(-1));
  }
  return rows;
}

const tables = {
  invariants: invariantRows(),
  mistakes: await mistakeRows(),
  configurations: await configurationRows(CONFIGURATIONS),
  works: await workRows(),
  cattle: await cattleRows(CATTLE_CONFIGURATIONS),
  'large-cattle': await cattleRows(LARGE_CATTLE_CONFIGURATIONS),
  'status-shards': await shardRows(SHARD_CONFIGURATIONS),
  'large-status-shards': await shardRows(LARGE_SHARD_CONFIGURATIONS),
  'large-configurations': await configurationRows(LARGE),
};
writePage(
  Object.entries(tables).reduce((page, [name, rows]) => withTable(page, name, rows), readPage()),
);
