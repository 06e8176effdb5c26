/** Turns a Plan into a rollout: as its status records it, or with newly found targets. */
import * as api from '../../api/autopilot/plan.ts';
import { mostInFlight, roomForTargets } from '../../engine/act/status-shards.ts';
import type { World } from '../../engine/dialect.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import {
  isFinal,
  type Payload,
  type Rollout,
  type Stage,
  sourceOf,
  type Target,
} from '../../engine/model/rollout.ts';
import { runIdOf, runSuffixOf } from '../../engine/model/runs.ts';
import { rfc3339 } from '../../util/clock.ts';
import { listed } from '../../util/phrases.ts';
import { isOlder } from '../../versions/release-parts.ts';
import { problemsOf, subjectOf } from './problems.ts';
import { versionsOf } from './removed-apis.ts';
import { discover, withoutControllers } from './signal.ts';
import { PLAN_STATES, phaseOfPlan, reasonOf, recordedStateOf, removedIn } from './states.ts';
import { mergeShards } from './status-shards/merge.ts';
import { entriesIn, listOf } from './status-shards/target-lists.ts';

export function resolve(stored: api.Plan, world: World, now: number): Rollout {
  const { plan, unread } = mergeShards(stored, world);
  const { spec, status } = plan;
  const phase = phaseOfPlan(status?.state);
  const problems = problemsOf(plan);
  const description = status?.commands.find((command) => command.description)?.description;
  const stages =
    phase === 'new' && problems.length === 0 ? newStages(plan, world, now) : recordedStages(plan);
  return {
    source: sourceOf(api.plans, plan),
    id: runIdOf(plan, spec.id),
    run: runSuffixOf(plan),
    phase,
    blocked: status?.state === 'Schedulable',
    reason: description === undefined ? undefined : reasonOf(description, phase),
    stages,
    problems,
    edit: isFinal({ phase }) ? editOf(plan, world, problems) : undefined,
    unread,
  };
}

/** What shows that people edited a Plan after it ended. Nodes tell whether its version is another one. */
function editOf(plan: api.Plan, world: World, problems: readonly Reason[]): string | undefined {
  const recorded = plan.status?.commands ?? [];
  const refusal = recorded.flatMap(({ description = '' }) => subjectOf(description) ?? [])[0];
  if (refusal === undefined) {
    // Of a refusal by another leader, nothing shows what it was for; any other Plan was right when it started.
    const isRefused = phaseOfPlan(plan.status?.state) === 'invalid';
    if (isRefused) return correctedRelease(plan);
    return problems[0]?.message ?? addedTarget(plan, world);
  }
  const { status: _recorded, ...applied } = plan;
  const [first] = problemsOf(applied);
  if (first === undefined) return `${refusal} was refused, and is correct now`;
  return subjectOf(first.message) === refusal
    ? undefined
    : `${refusal} was refused; now ${first.message}`;
}

/** The text names the release that removed an API: a Plan for an older one is not what was refused. */
function correctedRelease(plan: api.Plan): string | undefined {
  const texts = (plan.status?.commands ?? []).map(({ description = '' }) => description);
  const release = texts.flatMap((text) => removedIn(text) ?? [])[0];
  const versions = plan.spec.commands.flatMap(versionsOf);
  if (release === undefined || !versions.every((version) => isOlder(version, release)))
    return undefined;
  return `it was refused because of an API that ${release} removed, and now says ${listed(versions) || 'no version'}`;
}

/** A node that the Plan lists now and that the record of its success lacks. Other records may be of a part of it. */
function addedTarget({ spec, status }: api.Plan, world: World): string | undefined {
  if (status?.state !== PLAN_STATES.completed) return undefined;
  for (const recorded of status?.commands ?? []) {
    const parts = partsOf(spec.commands[recorded.id] ?? {}, recorded);
    for (const part of parts.filter(({ targets }) => targets?.discovery.static !== undefined)) {
      const known = new Set(entriesIn(recorded, listOf(part)).map(({ name }) => name));
      const added = namesOf(part, world).find((name) => !known.has(name));
      if (added !== undefined) return `${added} is listed now and was not part of it`;
    }
  }
  return undefined;
}

function newStages(plan: api.Plan, world: World, now: number): Stage[] {
  const { spec } = plan;
  const since = rfc3339(now);
  const room = roomForTargets(plan);
  return spec.commands.flatMap((command, id) =>
    partsOf(command).map((part) => {
      const pending = namesOf(part, world).map(
        (name): Target => ({ key: keyOf(id, part, name), name, state: 'pending', since }),
      );
      return stageOf(part, id, pending, room);
    }),
  );
}

function namesOf({ procedure, role, update, targets }: Part, world: World): string[] {
  const names = discover(targets, role, world);
  const isUpdateOfWorkers = procedure === 'k0supdate' && role === 'worker';
  return isUpdateOfWorkers
    ? withoutControllers(names, Object.keys(update?.platforms ?? {}), world)
    : names;
}

/** Includes recorded commands that were removed from the plan: their targets may be in flight. */
function recordedStages(plan: api.Plan): Stage[] {
  const { spec, status } = plan;
  const room = roomForTargets(plan);
  return (status?.commands ?? []).flatMap((recorded) =>
    partsOf(spec.commands[recorded.id] ?? {}, recorded).map((part) => {
      const targets = entriesIn(recorded, listOf(part)).map(
        ({ name, state, lastUpdatedTimestamp: since }): Target => {
          const key = keyOf(recorded.id, part, name);
          return { key, name, state: recordedStateOf(state), since };
        },
      );
      return stageOf(part, recorded.id, targets, room);
    }),
  );
}

function stageOf(
  { procedure, role, update, targets: spec }: Part,
  command: number,
  targets: Target[],
  room: number,
): Stage {
  const forced = update !== undefined && 'forceupdate' in update && update.forceupdate;
  return {
    id: `${command}/${procedure === 'airgapupdate' ? 'bundles' : `${role}s`}`,
    command,
    role,
    procedure,
    maxInFlight:
      role === 'controller'
        ? 1
        : Math.min(spec?.limits?.concurrent ?? 1, mostInFlight(targets, room)),
    version: update?.version ?? '',
    ...(procedure === 'airgapupdate' ? { keepsVersion: true } : {}),
    payloads: update ? payloadsOf(update) : {},
    forced: forced ?? false,
    selection: selectionOf(spec),
    targets,
  };
}

function selectionOf(spec: api.TargetSpec | undefined): string | undefined {
  const { static: listed, selector } = spec?.discovery ?? {};
  if (listed || !selector) return undefined;
  const parts = [
    selector.labels && `labels "${selector.labels}"`,
    selector.fields && `fields "${selector.fields}"`,
  ];
  return parts.filter(Boolean).join(' and ') || 'everything';
}

function payloadsOf({ platforms }: Update): Record<string, Payload> {
  const payloadOf = ({ url, sha256 }: Payload): Payload =>
    sha256 ? { url, sha256: sha256.toLowerCase() } : { url };
  return Object.fromEntries(
    Object.entries(platforms).map(([platform, each]) => [platform, payloadOf(each)]),
  );
}

function keyOf(command: number, { procedure, role }: Part, name: string): string {
  return `${command}/${procedure === 'airgapupdate' ? 'bundle' : role}/${name}`;
}

type Update = api.K0sUpdate | api.AirgapUpdate;

interface Part extends Pick<Stage, 'role'> {
  readonly procedure: 'k0supdate' | 'airgapupdate';
  /** Undefined if the command was removed from the plan. */
  readonly update: Update | undefined;
  readonly targets: api.TargetSpec | undefined;
}

/** In the order in which they run: image bundles first, since releases need them, then controllers, then workers. */
function partsOf(
  { k0supdate, airgapupdate }: api.PlanCommand,
  recorded: Partial<api.CommandStatus> = {},
): Part[] {
  const all: Part[] = [
    {
      procedure: 'airgapupdate',
      role: 'worker',
      update: airgapupdate,
      targets: airgapupdate?.workers,
    },
    {
      procedure: 'k0supdate',
      role: 'controller',
      update: k0supdate,
      targets: k0supdate?.targets.controllers,
    },
    {
      procedure: 'k0supdate',
      role: 'worker',
      update: k0supdate,
      targets: k0supdate?.targets.workers,
    },
  ];
  return all.filter(({ procedure, update }) => (update ?? recorded[procedure]) !== undefined);
}
