/** Owns the proof of whose signal an object carries: by our fence for good, by plan id where an original leader wrote it. */
import { expect, test } from 'vitest';
import { buildCampaign } from '../../../test/builders/campaigns.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildSignal } from '../../../test/builders/signals.ts';
import { buildStage, PAYLOAD } from '../../../test/builders/stages.ts';
import { buildTarget } from '../../../test/builders/targets.ts';
import { HOUR, later, MINUTE } from '../../../test/builders/times.ts';
import type { Campaign, Target } from '../../engine/model.ts';
import type { KubeObject } from '../../kube/types.ts';
import { annotationSignal } from './signal.ts';

const kindOn = (
  object: KubeObject,
  campaign: Partial<Campaign> = {},
  target: Partial<Target> = {},
  command = 0,
): string => {
  const targets = [buildTarget('w1', 'intended', target)];
  const stage = buildStage('worker', targets, { command });
  const [first = buildTarget('w1')] = stage.targets;
  return annotationSignal.read(object, buildCampaign([stage], campaign), stage, first).kind;
};

/** As our leader signals w1 for an intent of that moment. */
function signalled(since: string): KubeObject {
  const stage = buildStage('worker', [buildTarget('w1', 'intended', { since })]);
  const [target = buildTarget('w1')] = stage.targets;
  return annotationSignal.write(buildNode('w1'), buildCampaign([stage]), { stage, target, payload: PAYLOAD });
}

const another = { source: { ...buildCampaign([]).source, uid: 'another' } };

test.each([
  ['of this intent', later(MINUTE), {}, later(MINUTE), 'sent'],
  ['whose intent was recorded anew while it was on its way', later(MINUTE), {}, later(HOUR), 'sent'],
  ['of a plan of the same name and id that was deleted', later(MINUTE), another, later(MINUTE), 'none'],
  ['of this plan, whose id was edited since', later(MINUTE), { id: 'edited' }, later(MINUTE), 'sent'],
])('a signal of ours %s', (_, since, campaign, recorded, kind) => {
  expect(kindOn(signalled(since), campaign, { since: recorded })).toBe(kind);
});

test('a signal of ours for another command is none', () => {
  expect(kindOn(signalled(later(0)), {}, {}, 1)).toBe('none');
});

test.each([
  ['with the id of the plan', { planId: 'run-1' }, 'sent'],
  ['with another id', { planId: 'run-0' }, 'none'],
  ['with the id of the plan, from before the plan', { planId: 'run-1', created: later(-HOUR) }, 'none'],
])('a signal without a fence, %s', (_, signal, kind) => {
  expect(kindOn(buildNode('w1', { annotations: buildSignal(signal) }))).toBe(kind);
});
