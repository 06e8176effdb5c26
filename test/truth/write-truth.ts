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

/** The large clusters whose visit takes longer than a few minutes each. The page says that they are left out. */
const LARGEST: ReadonlySet<string> = new Set([
  '3 controllers, 4 workers',
  '3 controllers, 4 workers, 1 crash per node',
  '3 controllers, 4 workers, 2 at once, 1 crash per node',
  '3 controllers, 4 workers, 2 at once, 1 crash per node, each worker agent cordons its Node',
  '3 controllers, 4 workers, the plan is aborted, 1 crash per node',
  '3 workers, 2 at once',
  '2 workers, the plan is replaced',
  '1 worker, the new service never answers, the plan is replaced',
  '3 workers, the new service never answers on 1 of them, 2 at once',
  '1 worker, retried after its new service never answered, the plan is paused and aborted',
  '2 workers, the new service never answers on 1 of them, this worker is retried, the plan is aborted, 2 at once',
  "1 worker, k0s's own agent also runs, 2 faults",
  "2 workers, the leader requests downloads before their turn, k0s's own agent runs only in the new version, 2 faults",
  "2 workers, the leader requests downloads before their turn, k0s's own agent also runs",
  '2 workers, each node has a deadline and may lose its power permanently',
]);

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
    await rowsOf(
      LARGE.filter(({ name }) => !LARGEST.has(name)),
      async (configuration) => await visitModel(configuration, LARGE_SAMPLE),
    ),
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
