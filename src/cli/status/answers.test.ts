/** Shows that a watch reuses answers instead of asking each time, and that a denied request does not make the command fail. */

import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { DIALECTS, textsOf } from '../../../test/support/builders/dialects.ts';
import { PodApi } from '../../../test/support/builders/pod-api.ts';
import { buildPod } from '../../../test/support/builders/pods.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { READY } from '../../../test/support/builders/views.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_DRAIN } from '../../drain/pods.ts';
import { answered } from '../../engine/model/asked.ts';
import { sourceOf } from '../../engine/model/rollout.ts';
import { inspectionAnswers } from './answers.ts';
import { sourcesOf } from './inspection-sources.ts';

const { signal: abort } = new AbortController();

test('a drain is looked at again after some seconds, and not before', async () => {
  const api = new PodApi();
  api.put(buildPod('web'));
  const clock = new FakeClock();
  const sources = sourcesOf(api.client, READY, clock, abort);
  const look = async (): Promise<number> =>
    (await sources.drainPreview('n1', DEFAULT_DRAIN)).evictable;
  expect([await look(), await look()]).toEqual([1, 1]);
  const asked = api.reads.length;
  await clock.advance(4999);
  await look();
  expect(api.reads.length).toBe(asked);
  await clock.advance(1);
  await look();
  expect(api.reads.length).toBe(2 * asked);
  expect((await sources.drain('n1', DEFAULT_DRAIN)).left).toBe(1);
});

test('a dialect that asks for nothing has nothing against a plan, and none of its targets lets the leader drain', async () => {
  const sources = sourcesOf(new PodApi().client, READY, new FakeClock(), abort);
  const world = { get: () => undefined, list: () => [] };
  const plan = buildCattlePlan('p');
  const stage = buildStage('worker', ['w1']);
  expect(await sources.preconditions(cattleView, plan)).toEqual([]);
  expect(await sources.drainDelegation(cattleView, stage, buildTarget('w1'), world)).toBe(false);
});

test.each([
  ['autopilot', { kind: 'unanswered', reason: { code: 'ControlPlaneUnknown' } }, 1],
  // For this plan, the process that the user runs is the leader.
  ['kubeadm', answered([{ name: 'c2', ready: false, detail: 'no answer' }]), 0],
])(
  'an API server that this machine does not reach, of a plan of %s',
  async (name, known, unseen) => {
    const dialect = DIALECTS.find((each) => each.name === name);
    if (!dialect) throw new Error(`no dialect ${name}`);
    const down = async () =>
      await Promise.resolve([{ name: 'c2', ready: false, detail: 'no answer' }]);
    const sources = {
      ...sourcesOf(new PodApi().client, READY, new FakeClock(), abort),
      controlPlane: down,
    };
    const world = { get: () => undefined, list: () => [] };
    const answers = inspectionAnswers(sources, {
      dialect,
      plan: buildCattlePlan('p'),
      source: sourceOf(cattlePlans, buildCattlePlan('p')),
      world,
      options: DEFAULT_DRAIN,
      isLeaderHere: textsOf(name).advice.runsHere,
    });
    await answers.add([{ kind: 'control-plane' }]);
    expect(answers.known.controlPlane).toMatchObject(known);
    expect(answers.unseen.size).toBe(unseen);
  },
);
