/** Terms of leadership of a notifier, with an API server in memory and receivers that a test controls. */
import { nodeRollouts } from '../../../src/api/kinds.ts';
import type { NodeRolloutStatus } from '../../../src/api/refit/node-rollout.ts';
import { assess } from '../../../src/engine/assess/assess.ts';
import { readPlan } from '../../../src/engine/explain/plan-reading.ts';
import type { RolloutPhase } from '../../../src/engine/model/rollout.ts';
import { type Standing, standingOf } from '../../../src/engine/report/notifications.ts';
import { createNotifier, type Notifier } from '../../../src/engine/report/notifier.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type {
  Message,
  NotifiedEvent,
  PartlyTaken,
  Receiver,
} from '../../../src/notify/receivers.ts';
import { FakeClock, settle } from '../clock/fake-clock.ts';
import { T0 } from '../clock/times.ts';
import { buildLog } from './logs.ts';
import { MemoryApi } from './memory-api.ts';
import { buildPolicy } from './rollout-policies.ts';
import { buildRollout } from './rollouts.ts';
import { buildSnapshot } from './snapshots.ts';
import { buildStage } from './stages.ts';
import { buildTarget } from './targets.ts';

export function buildReceiver(
  name: string,
  events: readonly NotifiedEvent[] = ['Started', 'Failed', 'Done'],
): Receiver {
  return { name, type: 'Slack', events, address: { url: `http://${name}` } };
}

export interface PlanState {
  /** The number of targets that have failed, of three; 0 by default. */
  readonly failed?: number;
  readonly phase?: RolloutPhase;
  /** The name of the run, which is `run-1` by default. */
  readonly id?: string;
}

/** Returns the standing of a plan with three targets, which began at T0. Its uid is its name. */
export function buildStanding(name: string, state: PlanState = {}, now = T0): Standing {
  const { failed = 0, phase = 'running', id = 'run-1' } = state;
  const targets = ['w1', 'w2', 'w3'].map((each, index) =>
    buildTarget(each, index < failed ? 'failed' : 'intended'),
  );
  const rollout = buildRollout([buildStage('worker', targets, { version: 'v2' })], { phase, id });
  const source = { ...rollout.source, name, uid: name };
  const assessment = assess(buildSnapshot({ ...rollout, source }), buildPolicy(), now);
  return standingOf(`toy/${name}`, readPlan(assessment, { waits: [] }));
}

type Answer = Awaited<ReturnType<Parameters<typeof createNotifier>[0]['deliver']>>;

/**
 * Returns the parts of a scene. `answers` has the answer of each receiver; a receiver without an answer accepts messages.
 * `sent` has each message as the name of its receiver, the answer, and its events with their plans.
 */
export function buildNotifierScene(client: (api: MemoryApi) => KubeClient = (api) => api.client) {
  const clock = new FakeClock(T0);
  const api = new MemoryApi();
  const lines: string[] = [];
  const answers: Record<string, string | PartlyTaken | Promise<Answer> | undefined> = {};
  const sent: string[] = [];
  const messages: Message[] = [];
  const events: string[] = [];
  const outcomes: string[] = [];
  const notifier = createNotifier({
    client: client(api),
    clock,
    log: buildLog(lines, 'info'),
    metrics: { notified: (receiver, outcome) => outcomes.push(`${receiver} ${outcome}`) },
    deliver: async ({ name }, message) => {
      const notes = message.notes.map(({ plan, event }) => `${plan} ${event}`);
      sent.push(`${name}: ${notes.join(', ')}`);
      messages.push(message);
      return await answers[name];
    },
    recordEvent: ({ metadata }, { type, reason }) =>
      events.push(`${metadata.name} ${type} ${reason.code}: ${reason.message}`),
  });
  const follow = (
    name: string,
    state: PlanState = {},
    receivers: readonly Receiver[] = [buildReceiver('chat')],
  ): void =>
    notifier.follow(name, {
      plan: { metadata: { name } },
      place: { namespace: 'ns', name, subject: { name } },
      policy: 'p',
      receivers,
      standing: buildStanding(name, state, clock.now()),
    });
  const put = (name: string, status: NodeRolloutStatus = {}): void => {
    const plan = { apiVersion: 'v1', kind: 'Plan', name };
    api.put(nodeRollouts, { metadata: { name, uid: name }, spec: { plan }, status });
  };
  const recorded = (name: string) => api.read(nodeRollouts, name).status?.notifications;
  /** Returns the lines of the log since the last time. */
  const logged = (): string[] =>
    lines.splice(0).map((line) => {
      const { time: _time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      return Object.values(rest).join(' ');
    });
  return {
    clock,
    api,
    answers,
    sent,
    messages,
    events,
    outcomes,
    notifier,
    follow,
    put,
    recorded,
    logged,
    begin: () => term(notifier),
  };
}

/** Begins a term of leadership. `isOver` says whether all its work has ended. */
function term(notifier: Notifier) {
  const stop = new AbortController();
  const state = { isOver: false };
  const running = notifier.run(stop.signal).then(() => {
    state.isOver = true;
  });
  return {
    isOver: async (): Promise<boolean> => {
      await settle();
      return state.isOver;
    },
    end: async (): Promise<void> => {
      stop.abort();
      await running;
    },
    stop: (): void => stop.abort(),
  };
}
