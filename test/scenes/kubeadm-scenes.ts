/**
 * Scenes with upgrades of kubeadm hosts. `refit kubeadm apply` is the controller and works over SSH, so a scene has the
 * objects that it writes: the ConfigMap with the record, and the reports on the Nodes.
 */
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { kubeadmView } from '../../src/dialects/kubeadm/plan/kubeadm-dialect.ts';
import { type Report, reportPatch } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { newPlan, PLACE, withRecord } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { because } from '../../src/engine/model/reasons.ts';
import type { RecordedState, Rollout } from '../../src/engine/model/rollout.ts';
import { type ConfigMap, configMaps, nodes } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { T0 } from '../support/clock/times.ts';
import { makeNotReady, policyWith } from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

export const FROM = 'v1.36.2';
export const TO = 'v1.36.3';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** The second of a scene in which the upgrade begins. */
const BEGIN = 60;
const UID = 'run-of-the-scene';

/** The state of each host, and how long ago the state began, in seconds. */
type States = Readonly<Record<string, readonly [state: RecordedState, ago: number]>>;

interface Given {
  readonly phase?: Rollout['phase'];
  /** The host that failed if the phase is `failed`; w1 by default. */
  readonly failed?: string;
  /** Undefined before the first record. */
  readonly states?: States;
  readonly reports?: Readonly<Record<string, Partial<Report>>>;
  /** The second of the scene at which people look. */
  readonly at: number;
  readonly policy?: UpgradePolicySpec;
  readonly play?: (stage: Stage) => Promise<void>;
  readonly about?: readonly string[];
}

/** A control-plane host, cp1, and two workers, w1 and w2. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      const { states = {}, reports = {}, about = ['cp1', 'w1'] } = given;
      for (const host of ['cp1', 'w1', 'w2'])
        await createHost(stage, host, states[host]?.[0] === 'done' ? TO : FROM);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      await stage.waitUntil(BEGIN);
      const plan = planAt(rfc3339(stage.clock.now()));
      await stage.waitUntil(given.at);
      const now = stage.clock.now();
      await stage.create(configMaps, given.states ? recorded(plan, given, now) : plan);
      for (const [host, report] of Object.entries(reports)) await tell(stage, host, report, states);
      await given.play?.(stage);
      await showAll(stage, configMaps, about);
    },
  };
}

export async function createHost(
  stage: Stage,
  name: string,
  kubeletVersion: string,
): Promise<void> {
  const role = name.startsWith('cp') ? { [CONTROL_PLANE]: '' } : {};
  const platform = { operatingSystem: 'linux', architecture: 'amd64' };
  await stage.create(nodes, {
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...role } },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      // The API server of the scene answers at this address.
      addresses: [{ type: 'InternalIP', address: controllerAddress(1) }],
      nodeInfo: { kubeletVersion, ...platform },
    },
  });
}

function planAt(created: string): ConfigMap {
  const request = { version: TO, concurrent: 1, certificates: [], followers: [], kubelets: [] };
  const hosts = { leader: ['cp1'], workers: ['w1', 'w2'] };
  return newPlan({ ...request, ...hosts }, created, { uid: UID, created });
}

function recorded(plan: ConfigMap, given: Given, now: number): ConfigMap {
  const { phase = 'running', states = {}, failed = 'w1' } = given;
  const rollout = kubeadmView.resolve(plan, buildWorldOf([configMaps, [plan]]), T0 + BEGIN * 1000);
  const stages = rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => {
      const [state, ago] = states[target.name] ?? ['pending', (now - T0) / 1000 - BEGIN];
      return { ...target, state, since: rfc3339(now - ago * 1000) };
    }),
  }));
  const reason = phase === 'failed' ? because('TargetFailed', `${failed}: ${WHY}`) : undefined;
  return withRecord(plan, { ...rollout, phase, reason, stages });
}

async function tell(
  stage: Stage,
  host: string,
  report: Partial<Report>,
  states: States,
): Promise<void> {
  const [, ago] = states[host] ?? ['pending', 0];
  const since = rfc3339(stage.clock.now() - ago * 1000);
  const stageId = host.startsWith('cp') ? 'leader' : 'workers';
  const known = { rollout: UID, target: `${stageId}/${host}`, attempt: since, since, spent: {} };
  const whole = { ...known, state: 'working', step: 'Stage', from: FROM, ...report } as const;
  await stage.client.patch(nodes, host, reportPatch(whole), { type: 'merge' });
}

const DONE = { state: 'finished', step: 'Verify' } as const;
const WHY = 'kubeadm upgrade node failed with exit code 1: timed out waiting for the condition';

export const KUBEADM_SCENES: readonly Scene[] = [
  scene('not begun', { at: BEGIN + 5 }),
  scene('the first control-plane host is in progress', {
    at: BEGIN + 40,
    states: { cp1: ['intended', 30] },
    reports: { cp1: { step: 'Kubeadm' } },
  }),
  scene('a worker is drained', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50], w1: ['intended', 40] },
    reports: { cp1: DONE, w1: { step: 'Drain' } },
    about: ['w1', 'w2'],
  }),
  scene('a worker failed', {
    phase: 'failed',
    at: BEGIN + 200,
    states: { cp1: ['done', 150], w1: ['failed', 60] },
    reports: {
      cp1: DONE,
      w1: { state: 'failed', step: 'Kubeadm', touched: true, message: WHY },
    },
    about: ['w1', 'w2'],
  }),
  scene('the budget is used up', {
    at: BEGIN + 200,
    states: { cp1: ['done', 150], w1: ['failed', 60], w2: ['intended', 40] },
    reports: {
      cp1: DONE,
      w1: { state: 'failed', step: 'Kubeadm', touched: true, message: WHY },
      w2: { step: 'Kubelet', touched: true },
    },
    about: ['w1', 'w2'],
  }),
  scene('done', {
    phase: 'done',
    at: BEGIN + 300,
    states: { cp1: ['done', 200], w1: ['done', 120], w2: ['done', 40] },
    reports: { cp1: DONE, w1: DONE, w2: DONE },
  }),
  scene('paused while a host is in progress', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50], w1: ['intended', 40] },
    reports: { cp1: DONE, w1: { step: 'Kubelet', touched: true } },
    play: async (stage) => await stage.refit('pause'),
    about: ['w1', 'w2'],
  }),
  scene('aborted while a host is in progress', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50], w1: ['intended', 40] },
    reports: { cp1: DONE, w1: { step: 'Kubelet', touched: true } },
    play: async (stage) => await stage.refit('abort', '--reason', 'bad release'),
    about: ['w1', 'w2'],
  }),
  scene('the control-plane host failed', {
    phase: 'failed',
    failed: 'cp1',
    at: BEGIN + 200,
    states: { cp1: ['failed', 60] },
    reports: { cp1: { state: 'failed', step: 'Kubeadm', touched: true, message: WHY } },
    about: ['cp1', 'w1'],
  }),
  scene('a failed worker is retried', {
    phase: 'failed',
    at: BEGIN + 200,
    states: { cp1: ['done', 150], w1: ['failed', 60] },
    reports: {
      cp1: DONE,
      w1: { state: 'failed', step: 'Kubeadm', touched: true, message: WHY },
    },
    play: async (stage) => await stage.refit('retry', 'w1'),
  }),
  scene('a failed worker waits for its next attempt', {
    policy: { retry: { attempts: 3, backoff: '5m' } },
    at: BEGIN + 200,
    states: { cp1: ['done', 150], w1: ['failed', 60] },
    reports: {
      cp1: DONE,
      w1: { state: 'failed', step: 'Kubeadm', touched: true, message: WHY },
    },
    about: ['w1', 'w2'],
  }),
  scene('rolled back after its end', {
    phase: 'done',
    at: BEGIN + 300,
    states: { cp1: ['done', 200], w1: ['done', 120], w2: ['done', 40] },
    reports: { cp1: DONE, w1: DONE, w2: DONE },
    play: async (stage) =>
      await stage.refit('rollback', 'kubeadm/kube-system/refit-kubeadm', '--reason', 'bad release'),
  }),
  scene('a worker is held', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50] },
    reports: { cp1: DONE },
    play: async (stage) =>
      await stage.refit('hold', 'w1', '--reason', 'disk is being replaced', '--for', '4h'),
    about: ['w1', 'w2'],
  }),
  scene('a held worker was left out at the end', {
    phase: 'done',
    at: BEGIN + 300,
    states: { cp1: ['done', 200], w1: ['skipped', 120], w2: ['done', 40] },
    reports: { cp1: DONE, w2: DONE },
    play: async (stage) => await stage.refit('hold', 'w1', '--reason', 'disk is being replaced'),
    about: ['w1', 'w2'],
  }),
  scene('the window is closed', {
    policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    at: BEGIN + 90,
    states: { cp1: ['done', 50] },
    reports: { cp1: DONE },
    about: ['w1'],
  }),
  scene('the window is opened once', {
    policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    at: BEGIN + 90,
    states: { cp1: ['done', 50] },
    reports: { cp1: DONE },
    play: async (stage) => await stage.refit('start', '--now', '--for', '2h'),
    about: ['w1'],
  }),
  scene('a wave needs an approval', {
    policy: {
      waves: [
        { selector: { matchLabels: { 'kubernetes.io/hostname': 'w1' } } },
        { approval: 'Manual' },
      ],
    },
    at: BEGIN + 200,
    states: { cp1: ['done', 150], w1: ['done', 40] },
    reports: { cp1: DONE, w1: DONE },
    about: ['w2'],
  }),
  scene('a worker is not Ready', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50] },
    reports: { cp1: DONE },
    play: async (stage) => await makeNotReady(stage, 'w1'),
    about: ['w1', 'w2'],
  }),
  scene('aborted while a worker is drained', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50], w1: ['intended', 40] },
    reports: { cp1: DONE, w1: { step: 'Drain' } },
    play: async (stage) => await stage.refit('abort', '--reason', 'bad release'),
    about: ['w1'],
  }),
  scene('deleted', {
    at: BEGIN + 90,
    states: { cp1: ['done', 50], w1: ['intended', 40] },
    play: async (stage) => {
      const { name, namespace } = PLACE;
      await stage.client.delete(configMaps, name, { namespace });
    },
  }),
];
