/**
 * Visits every state, and writes the tables of docs/internals/truth.md. `npm run safety` calls it. With the names of tables
 * as arguments, it writes only these tables.
 */

import type { Configuration } from '../model/cluster.ts';
import { CONFIGURATIONS } from '../model/configurations.ts';
import { explore } from '../model/explorer.ts';
import { LARGE } from '../model/large-configurations.ts';
import { withTable } from '../model/safety-page.ts';
import { World } from '../model/world.ts';
import { ADVICE_TABLE, adviceRows } from './advice/page.ts';
import { LARGE_TOLD, SMALL_TOLD } from './model-configurations.ts';
import {
  knownRows,
  readTruthPage,
  toldInvariantRows,
  VISIT_HEAD,
  visitRow,
  writeTruthPage,
} from './model-page.ts';
import { Judge, statesOf, type Visit, visit } from './model-visit.ts';

/** Visits the states of a cluster of the safety page. There, the NodeRollout of a state is the first one of a leader. */
async function visitModel(configuration: Configuration, each = 1): Promise<Visit> {
  const world = new World(configuration);
  const judge = new Judge(configuration, { each });
  await explore(world.model(), {
    onState: (state) => judge.look({ state, seen: world.seen(state) }),
  });
  return judge.result();
}

const problems: string[] = [];

async function rowsOf(
  configurations: readonly Configuration[],
  visited: (configuration: Configuration) => Promise<Visit>,
): Promise<string[]> {
  const rows = [...VISIT_HEAD];
  for (const configuration of configurations) {
    const result = await visited(configuration);
    const { name } = configuration;
    for (const { invariant, sentence, knownRow } of result.untruths)
      if (knownRow === undefined) problems.push(`${name}: ${invariant} is broken: ${sentence}`);
    rows.push(visitRow(name, result));
    console.log(rows.at(-1));
  }
  return rows;
}

/** Of the large clusters, only each n-th different rendering is made and judged. With all of them, a run takes many hours. */
const LARGE_SAMPLE = 40;

/** The rows of each table, by the name of the table. */
const TABLES: Readonly<Record<string, () => readonly string[] | Promise<readonly string[]>>> = {
  'told-invariants': toldInvariantRows,
  'known-untruths': knownRows,
  [ADVICE_TABLE]: adviceRows,
  'told-states': async () =>
    await rowsOf([...SMALL_TOLD, ...LARGE_TOLD], async (configuration) =>
      visit(configuration, await statesOf(configuration)),
    ),
  'told-model-states': async () =>
    await rowsOf(CONFIGURATIONS, async (configuration) => await visitModel(configuration)),
  'told-large-model-states': async () =>
    await rowsOf(LARGE, async (configuration) => await visitModel(configuration, LARGE_SAMPLE)),
};

// The names of tables as arguments write only these tables, because the large ones take an hour.
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(TABLES, name));
if (unknown.length > 0)
  throw new Error(
    `there is no table ${unknown.join(', ')}; the tables are ${Object.keys(TABLES).join(', ')}`,
  );
for (const [name, rowsFor] of Object.entries(TABLES)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const rows = await rowsFor();
  if (problems.length > 0) throw new Error(problems.join('\n'));
  writeTruthPage(withTable(readTruthPage(), name, rows));
}
