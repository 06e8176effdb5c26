/** The command behind `npm run safety`: explores every configuration and writes the tables of docs/internals/safety.md. */
import type { CapiConfiguration } from './capi/capi-objects.ts';
import { CapiWorld } from './capi/capi-world.ts';
import {
  CAPI_CONFIGURATIONS,
  CAPI_HEAD,
  capiRow,
  LARGE_CAPI_CONFIGURATIONS,
} from './capi/configurations.ts';
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
import { type Exploration, explore, type Model, printViolation } from './explorer.ts';
import {
  KUBEADM_CONFIGURATIONS,
  KUBEADM_HEAD,
  kubeadmRow,
  LARGE_KUBEADM_CONFIGURATIONS,
} from './kubeadm/configurations.ts';
import type { KubeadmConfiguration } from './kubeadm/kubeadm-objects.ts';
import { KubeadmWorld } from './kubeadm/kubeadm-world.ts';
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

/** Explores worlds that need nothing but a configuration. */
async function worldRows<C extends { readonly name: string }>(
  head: readonly string[],
  configurations: readonly C[],
  worldOf: (configuration: C) => Model,
  rowOf: (configuration: C, exploration: Exploration) => string,
): Promise<string[]> {
  const rows = [...head];
  for (const configuration of configurations) {
    const exploration = await explore(worldOf(configuration));
    if (exploration.violation)
      throw new Error(`${configuration.name}: ${printViolation(exploration.violation)}`);
    rows.push(rowOf(configuration, exploration));
    console.log(rows.at(-1));
  }
  return rows;
}

const cattleRows = async (configurations: readonly CattleConfiguration[]): Promise<string[]> =>
  await worldRows(CATTLE_HEAD, configurations, (each) => new CattleWorld(each), cattleRow);

const capiRows = async (configurations: readonly CapiConfiguration[]): Promise<string[]> =>
  await worldRows(CAPI_HEAD, configurations, (each) => new CapiWorld(each), capiRow);

const kubeadmRows = async (configurations: readonly KubeadmConfiguration[]): Promise<string[]> =>
  await worldRows(KUBEADM_HEAD, configurations, (each) => new KubeadmWorld(each), kubeadmRow);

const tables = {
  invariants: invariantRows(),
  mistakes: await mistakeRows(),
  configurations: await configurationRows(CONFIGURATIONS),
  works: await workRows(),
  cattle: await cattleRows(CATTLE_CONFIGURATIONS),
  'large-cattle': await cattleRows(LARGE_CATTLE_CONFIGURATIONS),
  capi: await capiRows(CAPI_CONFIGURATIONS),
  'large-capi': await capiRows(LARGE_CAPI_CONFIGURATIONS),
  kubeadm: await kubeadmRows(KUBEADM_CONFIGURATIONS),
  'large-kubeadm': await kubeadmRows(LARGE_KUBEADM_CONFIGURATIONS),
  'status-shards': await shardRows(SHARD_CONFIGURATIONS),
  'large-status-shards': await shardRows(LARGE_SHARD_CONFIGURATIONS),
  'large-configurations': await configurationRows(LARGE),
};
writePage(
  Object.entries(tables).reduce((page, [name, rows]) => withTable(page, name, rows), readPage()),
);
