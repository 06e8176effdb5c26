/** Tests which reports of earlier upgrades are used to estimate how long a target takes. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { Role, Stage } from '../../../engine/model/rollout.ts';
import { encodeReport } from '../../../signal/annotations.ts';
import { ATTEMPT_LABEL, REPORT_ANNOTATION, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { signal } from './autopilot-signal.ts';

const HOUR = 3_600_000;
const CREATED = later(1000);
const LABELS = { [ATTEMPT_LABEL]: `other.${CREATED.replaceAll(':', '')}` };

interface Scene {
  readonly status?: string;
  readonly spent?: Readonly<Record<string, unknown>>;
  readonly reportOf?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly by?: string;
  readonly role?: Role;
  readonly procedure?: string;
}

function earlierMs(scene: Scene): number | undefined {
  const { status = 'Completed', spent = { Restart: HOUR }, role = 'worker', by = 'other' } = scene;
  const report = { ...encodeReport({ created: scene.reportOf ?? CREATED }) };
  const text = JSON.stringify({ ...JSON.parse(report[REPORT_ANNOTATION] ?? ''), spent });
  const metadata = {
    annotations: {
      ...buildSignal({ created: CREATED, status }),
      [ROLLOUT_ANNOTATION]: `${by}/${CREATED}`,
      [REPORT_ANNOTATION]: text,
    },
    labels: scene.labels ?? LABELS,
  };
  const world =
    role === 'worker'
      ? buildWorld([], [buildNode('n1', metadata)])
      : buildWorld([buildControlNode('n1', metadata)], []);
  const more: Partial<Stage> = scene.procedure === undefined ? {} : { procedure: scene.procedure };
  const rollout = buildRollout([], { id: 'id1' });
  const stage = buildStage(role, [], more);
  return signal.earlierMs?.(world, rollout, stage, buildTarget('n1'), { metadata: { name: 'p' } });
}

test.each<[string, Scene, number | undefined]>([
  ['an earlier plan', {}, HOUR],
  ['all steps together', { spent: { Downloading: HOUR, Restart: 5 } }, HOUR + 5],
  ['an upgrade that failed', { status: 'Failed' }, undefined],
  ['an upgrade in progress', { status: 'Restart' }, undefined],
  ['a report of another signal', { reportOf: later(5) }, undefined],
  ['an upgrade of this rollout', { by: 'plan-uid' }, undefined],
  ['other work than that of the stage', { procedure: 'airgapupdate' }, undefined],
  ['a Node without the label of a leader', { labels: {} }, undefined],
  ['a Node with the label of another attempt', { labels: { [ATTEMPT_LABEL]: 'x.y' } }, undefined],
  ['a ControlNode, which needs no label', { role: 'controller', labels: {} }, HOUR],
  ['no time', { spent: {} }, undefined],
  ['a day', { spent: { Restart: 24 * HOUR } }, 24 * HOUR],
  ['more than a day', { spent: { Restart: 24 * HOUR + 1 } }, undefined],
  ['a text', { spent: { Restart: '3600000' } }, undefined],
  ['a negative time', { spent: { Restart: -1, Downloading: 5 } }, 5],
  ['a step that no agent knows', { spent: { toString: 7, Other: 7, Downloading: 5 } }, 5],
])('%s', (_, scene, expected) => {
  expect(earlierMs(scene)).toBe(expected);
});
