/** Proves that the reporter writes one Event when a running plan is edited, and forgets a plan that was deleted. */

import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { assess } from '../assess/assess.ts';
import { viewsOf } from '../snapshot/world.ts';
import { createReporter } from './reporter.ts';

function scene() {
  const api = new MemoryApi();
  const events: string[] = [];
  const watched = tableDialect.watched.map(
    ({ resource }) => [resource, api.view(resource)] as const,
  );
  const reporter = createReporter({
    dialect: tableDialect,
    client: api.client,
    ...knowledgeOf(viewsOf(watched)),
    log: buildLog([], 'info'),
    metrics: createMetrics(),
    recordEvent: (_object, { type, reason }) => events.push(`${type} ${reason.code}`),
  });
  const table = buildTablePlan({ workers: ['w1'] });
  const decided = async (generation: number): Promise<void> => {
    const plan = { ...table, metadata: { ...table.metadata, generation } };
    const rollout = buildRollout([buildStage('worker', ['w1'])]);
    const snapshot = withParts(buildSnapshot(rollout), { abilities: { canIgnoreEdits: true } });
    await reporter.decided({ plan, assessment: assess(snapshot, buildPolicy(), T0) });
  };
  return { events, decided, gone: () => reporter.gone('plan') };
}

test('a leader writes one Event for each edit of a plan', async () => {
  const { events, decided } = scene();
  await decided(1);
  expect(events).toEqual([]);
  await decided(2);
  await decided(2);
  expect(events).toEqual(['Normal EditedWhileRunning']);
});

test('a plan that is created again under the same name was not edited', async () => {
  const { events, decided, gone } = scene();
  await decided(1);
  gone();
  await decided(2);
  expect(events).toEqual([]);
});
