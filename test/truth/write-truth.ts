/** Visits every state, and writes the tables of docs/internals/truth.md. `npm run safety` calls it. */

import type { Configuration } from '../model/cluster.ts';
import { CONFIGURATIONS } from '../model/configurations.ts';
import { explore } from '../model/explorer.ts';
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
async function visitModel(configuration: Configuration): Promise<Visit> {
  const world = new World(configuration);
  const judge = new Judge(configuration, {});
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

const tables = {
  'told-invariants': toldInvariantRows(),
  'known-untruths': knownRows(),
  [ADVICE_TABLE]: adviceRows(),
  'told-states': await rowsOf([...SMALL_TOLD, ...LARGE_TOLD], async (configuration) =>
    visit(configuration, await statesOf(configuration)),
  ),
  'told-model-states': await rowsOf(CONFIGURATIONS, visitModel),
};
if (problems.length > 0) throw new Error(problems.join('\n'));
writeTruthPage(
  Object.entries(tables).reduce(
    (page, [name, rows]) => withTable(page, name, rows),
    readTruthPage(),
  ),
);
