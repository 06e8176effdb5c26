/** Tests what the log and the API show of an announced event. */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { nodes } from '../../kube/resources.ts';
import { because, type ReportedEvent } from '../model/reasons.ts';
import { viewsOf } from '../snapshot/world.ts';
import { createAnnouncer } from './announcer.ts';

const WARNING: ReportedEvent = { type: 'Warning', reason: because('TargetFailed', 'w1: 404') };
const NEWS: ReportedEvent = { type: 'Normal', reason: because('Completed', 'Upgraded to v2') };

/** Returns the announcer of a leader that knows the Node w1, with its log and the recorded Events. */
function scene() {
  const api = new MemoryApi();
  api.put(nodes, buildNode('w1'));
  const view = api.view(nodes);
  view.catchUp();
  const lines: string[] = [];
  const events: [string, ReportedEvent][] = [];
  const announcer = createAnnouncer({
    dialect: tableDialect,
    world: knowledgeOf(viewsOf([[nodes, view]])).world,
    log: buildLog(lines, 'debug'),
    recordEvent: (object, event) => events.push([object.metadata.name, event]),
  });
  const log = (): unknown[] =>
    lines.map((line) => {
      const { time: _time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      return rest;
    });
  return { ...announcer, events, log };
}

test('an event of a plan is logged with its plan, and a warning has the level warn', () => {
  const { onPlan, events, log } = scene();
  const plan = { metadata: { name: 'plan', namespace: 'ns' } };
  onPlan(plan, WARNING);
  onPlan(plan, NEWS);
  expect(events).toEqual([
    ['plan', WARNING],
    ['plan', NEWS],
  ]);
  expect(log()).toEqual([
    { level: 'warn', msg: 'w1: 404', plan: 'ns/plan', reason: 'TargetFailed' },
    { level: 'info', msg: 'Upgraded to v2', plan: 'ns/plan', reason: 'Completed' },
  ]);
});

test('an event of a target is logged even if nobody knows its object any more', () => {
  const { onTargets, events, log } = scene();
  const stage = buildStage('worker', ['w1', 'w2']);
  onTargets(
    'ns/plan',
    stage.targets.map((target) => ({ ...WARNING, stage, target })),
  );
  expect(events).toEqual([['w1', WARNING]]);
  expect(log()).toEqual(
    ['w1', 'w2'].map((node) => ({
      level: 'warn',
      msg: 'w1: 404',
      plan: 'ns/plan',
      node,
      reason: 'TargetFailed',
    })),
  );
});

test('an event of a Node is logged with its name, also if the Node is gone', () => {
  const { onNodes, events, log } = scene();
  onNodes([
    { ...NEWS, node: 'w1' },
    { ...NEWS, node: 'w2' },
  ]);
  expect(events).toEqual([['w1', NEWS]]);
  expect(log()).toEqual(
    ['w1', 'w2'].map((node) => ({
      level: 'info',
      msg: 'Upgraded to v2',
      node,
      reason: 'Completed',
    })),
  );
});
