/** Shows what `refit why` and `refit status` print of silences, which the leader has shown in the NodeRollout. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { silencingIn } from '../../engine/report/shown-silencing.ts';
import { mediumOf } from '../output.ts';
import type { Sources } from '../status/inspection-sources.ts';
import { whyLines, whyView } from './why-command.ts';

const NOW = T0 + 10 * MINUTE;
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });
const PROBLEM = 'silence nodes of UpgradePolicy careful: am.example answered 503';

async function statusWith(silencing: Sources['silencing'], hasSilences = true) {
  const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const states = recorded({ w1: 'SignalSent', w2: 'SignalPending' }, later(MINUTE));
  const silences = hasSilences ? [{ name: 'nodes', url: 'http://am.example' }] : [];
  const plans = await lookAt(
    [buildPlan({ commands: [{ k0supdate: update }] }, statusOf('SchedulableWait', [], states))],
    [buildControlNode('c1')],
    [buildNode('w1'), buildNode('w2')],
    NOW,
    buildViewParts({ silencing }, [buildUpgradePolicy('careful', { silences })]),
  );
  return { leader: { state: 'held', holder: 'a', since: later(0) } as const, plans };
}

const BAD = { isGood: false, message: PROBLEM, since: later(8 * MINUTE) };
const GOOD = { isGood: true, message: 'alerts about nodes in progress are silenced' };
const bad = async () => await Promise.resolve(BAD);

test('why says of a plan and of a node in progress that alerts are not silenced, and why', async () => {
  const status = await statusWith(bad);
  const line = `alerts  not silenced, for 2 min: ${PROBLEM}`;
  for (const node of [undefined, 'w1'])
    expect(whyLines(status, node, NOW, PIPE).join('\n')).toContain(line);
  expect(whyLines(status, 'w2', NOW, PIPE).join('\n')).not.toContain(PROBLEM);
  expect(whyView(status, 'w1').plans[0]?.silencing).toEqual(BAD);
});

test('why says of a node in progress that its alerts are silenced', async () => {
  const status = await statusWith(async () => await Promise.resolve(GOOD));
  expect(whyLines(status, 'w1', NOW, PIPE).join('\n')).toContain(`alerts  ${GOOD.message}`);
});

test('a policy without silences asks nothing, and an answer that is refused is named', async () => {
  const without = await statusWith(bad, false);
  expect(whyLines(without, 'w1', NOW, PIPE).join('\n')).not.toContain(PROBLEM);
  const refused = await statusWith(async () => await Promise.reject(new Error('forbidden')));
  const lines = whyLines(refused, 'w1', NOW, PIPE).join('\n');
  expect(lines).toContain('unknown whether alerts are silenced: forbidden');
});

test('the condition of the NodeRollout counts for its own plan only', () => {
  const condition = { type: 'Silenced', status: 'False', message: PROBLEM };
  const shown = { spec: { plan: { uid: 'u' } }, status: { conditions: [condition] } };
  expect(silencingIn(shown as unknown as NodeRollout, 'u')).toMatchObject({
    isGood: false,
    message: PROBLEM,
  });
  expect(silencingIn(shown as unknown as NodeRollout, 'another')).toBeUndefined();
  expect(silencingIn(undefined, undefined)).toBeUndefined();
});
