/**
 * Runs the controller of UpdateConfigs. It selects the changes that start a run, and starts a new follower for each
 * term of the leader.
 */
import { PLAN_NAME, type Plan, plans } from '../api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../api/autopilot/update-config.ts';
import { LEAD_TIME_ANNOTATION } from '../engine/policy/plan-windows.ts';
import { createInformer, type Informer } from '../kube/watch/informer.ts';
import { type Controller, type EventSource, fromMapping } from '../runtime/run-controller.ts';
import { sameJson } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { AFTER_FAILURE_ANNOTATION, TIME_ZONE_ANNOTATION } from './config/read-config.ts';
import { CHECK_ANNOTATION } from './status.ts';
import { UpdateFollower, type UpdateParts } from './update-follower.ts';

/** All UpdateConfigs share one key, because only one of them may own the Plan. */
const KEY = 'updates';
/** The time limit of one run in milliseconds. A slow answer of the server and the writes that follow take less time. */
const TIMEOUT_MS = 120_000;

export function updateController(parts: UpdateParts): Controller {
  const { client, log, clock } = parts;
  const configs = createInformer(client, updateConfigs, { log, clock });
  const ours = createInformer(client, plans, {
    log,
    clock,
    fieldSelector: `metadata.name=${PLAN_NAME}`,
  });
  const hasChanged = (plan: Plan, before?: Plan): boolean =>
    !before || plan.status?.state !== before.status?.state;
  let follower = new UpdateFollower(parts);
  return {
    name: 'updates',
    // The second source starts a run of the follower when the Plan changes, for example when the Plan ends.
    sources: [
      wholeTerm(configs, () => parts.metrics.keepUpdates([])),
      fromMapping(ours, () => [KEY], hasChanged),
    ],
    begin: () => {
      follower = new UpdateFollower(parts);
    },
    reconcile: async (_key, ends) => await follower.followAll(configs.list(), ends),
    concurrency: 1,
    timeoutMs: TIMEOUT_MS,
  };
}

/**
 * Returns a source that starts a run when the term of this leader begins. It does so even if there is no UpdateConfig,
 * because there may be a new version to report. It calls `atEnd` at the end of the term.
 */
function wholeTerm(configs: Informer<UpdateConfig>, atEnd: () => void): EventSource {
  // The annotations that Refit itself writes start no run.
  const hasNewWishes = (config: UpdateConfig, before?: UpdateConfig): boolean =>
    !before || !sameJson(wishesOf(config), wishesOf(before));
  const changes = fromMapping(configs, () => [KEY], hasNewWishes);
  return {
    informer: configs,
    start: (enqueue) => {
      enqueue(KEY);
      const stop = changes.start(enqueue);
      return () => {
        stop();
        atEnd();
      };
    },
  };
}

/** Returns what people write into an UpdateConfig: its spec, by the generation, and some annotations. */
function wishesOf({
  metadata: { generation, deletionTimestamp, annotations = {} },
}: UpdateConfig): unknown {
  const names = [
    CHECK_ANNOTATION,
    AFTER_FAILURE_ANNOTATION,
    TIME_ZONE_ANNOTATION,
    LEAD_TIME_ANNOTATION,
  ];
  return [generation, deletionTimestamp, ...names.map((name) => ownMember(annotations, name))];
}
