/**
 * Converts a Plan into a rollout, and writes the rollout back into the status of the Plan. The targets of the rollout
 * are the recorded targets, or for a new Plan the targets that the selectors find.
 */
import * as api from '../../../api/autopilot/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import { rollBackReasonOn, rolledBackBy } from '../../../engine/model/earlier-versions.ts';
import type { JoinedTarget } from '../../../engine/model/joined-target.ts';
import type { Reason } from '../../../engine/model/reasons.ts';
import {
  isFinal,
  newTarget,
  type Payload,
  type Rollout,
  type Stage,
  sourceOf,
  type Target,
  type TurnTime,
} from '../../../engine/model/rollout.ts';
import { idOfRun, orderedRun } from '../../../engine/model/runs.ts';
import {
  entryBytes,
  exceedPlan,
  mostInFlight,
  roomForTargets,
} from '../../../engine/model/status-shards.ts';
import { defined } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';
import { listed } from '../../../util/phrases.ts';
import { isOlder } from '../../../versions/release-parts.ts';
import { discover, OBJECTS, withoutControllers } from './autopilot-signal.ts';
import { MOST_COMMANDS, problemsOf, subjectOf } from './problems.ts';
import {
  idOfRecordedRun,
  type RecordedSpec,
  recordedSpecIn,
  startedSpecOf,
  withoutRecordedSpec,
  withRecordedSpec,
} from './recorded-run.ts';
import { versionsOf } from './removed-apis.ts';
import {
  PLAN_STATES,
  phaseOfPlan,
  planStateOf,
  reasonOf,
  reasonOfState,
  recordedStateOf,
  removedIn,
  TARGET_STATES,
  textOf,
} from './states.ts';
import { mergeShards, shardReferenceOf, withoutShards } from './status-shards/merge.ts';
import { entriesIn, listOf, withEntries } from './status-shards/target-lists.ts';

export function resolve(stored: api.Plan, world: World, now: TurnTime): Rollout {
  const { plan, phase, id, known, ignoresEdits, problems, unread } = readPlan(stored, world);
  const run = phase === 'new' ? orderedRun(stored) : known?.run;
  const given = idOfRun(api.idOfPlan(stored), run);
  const { status } = plan;
  const description = status?.commands.find((command) => command.description)?.description;
  const stages =
    phase === 'new' && problems.length === 0 ? newStages(plan, world, now) : recordedStages(plan);
  return {
    source: sourceOf(api.plans, plan),
    id: phase === 'new' ? given : id,
    ...(phase === 'new' || id === given ? {} : { editedId: api.idOfPlan(stored) }),
    run,
    generation: known?.generation,
    ...(ignoresEdits ? { ignoresEdits } : {}),
    rollsBack: rolledBackBy(plan),
    ...defined({ rollsBackReason: rollBackReasonOn(plan) }),
    phase,
    blocked: status?.state === 'Schedulable',
    reason:
      description === undefined ? reasonOfState(status?.state ?? '') : reasonOf(description, phase),
    stages,
    problems,
    edit: isFinal({ phase }) ? editOf(plan, world, problems) : undefined,
    unread,
  };
}

/** Returns the Plan with the spec that its run uses, and its phase, the id of its run, its problems and its recorded spec. */
function readPlan(stored: api.Plan, world: World) {
  const { plan: merged, unread } = mergeShards(stored, world);
  const phase = phaseOfPlan(merged.status?.state);
  const known = recordedSpecIn(merged);
  const ignoresEdits = phase === 'running' && known?.started !== undefined;
  const id = idOfRecordedRun(merged);
  const plan = asCarriedOut(withoutRecordedSpec(merged), ignoresEdits ? known : undefined);
  // A Plan that ignores edits was valid when it started, so it is not checked again.
  const problems = ignoresEdits ? [] : problemsOf(stored);
  return { plan, phase, id, known, ignoresEdits, problems, unread };
}

/** Returns the nodes that exist and that a running Plan selects or lists, but that its record does not contain. */
export function joinedTargets(stored: api.Plan, world: World, now: TurnTime): JoinedTarget[] {
  const { plan, phase, problems, unread } = readPlan(stored, world);
  if (phase !== 'running' || problems.length > 0 || unread !== undefined) return [];
  const found = (plan.status?.commands ?? []).flatMap((recorded) =>
    partsOf(plan.spec.commands[recorded.id] ?? {}).flatMap((part): JoinedTarget[] => {
      const known = new Set(entriesIn(recorded, listOf(part)).map(({ name }) => name));
      const names = namesOf(part, world).filter(
        (name) => !known.has(name) && world.get(OBJECTS[part.role], name) !== undefined,
      );
      return names.map((name) => ({
        stage: stageIdOf(recorded.id, part),
        role: part.role,
        target: newTarget({ key: keyOf(recorded.id, part, name), name }, now),
      }));
    }),
  );
  return found.length > 0 && !hasRoomFor(stored, plan, found)
    ? found.map((each) => ({ ...each, obstacle: 'the record of the plan has no room for it' }))
    : found;
}

/**
 * Returns true if the status of the Plan has room for the targets. A Plan with StatusShards accepts no further targets.
 */
function hasRoomFor(stored: api.Plan, plan: api.Plan, found: readonly JoinedTarget[]): boolean {
  if (shardReferenceOf(stored) !== undefined) return false;
  const recorded = recordedStages(plan).flatMap(({ targets }) => targets);
  const all = [...recorded, ...found.map(({ target }) => target)];
  const bytes = all.reduce((sum, target) => sum + entryBytes(target), 0);
  return !exceedPlan([all]) && bytes <= roomForTargets(stored);
}

/** Returns the Plan with the recorded spec, so that later edits take no effect; the same Plan if no spec is recorded. */
function asCarriedOut(plan: api.Plan, recorded: RecordedSpec | undefined): api.Plan {
  const started = recorded?.started;
  return started === undefined ? plan : { ...plan, spec: { ...plan.spec, ...started } };
}

/**
 * Returns a sentence which says how somebody edited the Plan after it ended; undefined if no edit is found. This
 * function does not find a changed version, because the versions of the nodes show that.
 */
function editOf(plan: api.Plan, world: World, problems: readonly Reason[]): string | undefined {
  const recorded = plan.status?.commands ?? [];
  const refusal = recorded.flatMap(({ description = '' }) => subjectOf(description) ?? [])[0];
  if (refusal === undefined) {
    // No recorded text names a wrong field. If the phase is `invalid`, another leader refused the Plan and wrote a text
    // without the field. Otherwise the Plan was valid when it started.
    const isRefused = phaseOfPlan(plan.status?.state) === 'invalid';
    if (isRefused) return correctedRelease(plan);
    return problems[0]?.message ?? addedTarget(plan, world);
  }
  const [first] = problemsOf(asApplied(plan));
  if (first === undefined) return `${refusal} was refused, and is correct now`;
  return subjectOf(first.message) === refusal
    ? undefined
    : `${refusal} was refused; now ${first.message}`;
}

/**
 * Returns a sentence if the Plan was refused because of a removed API, but all its versions are now older than the
 * release that removed the API; otherwise undefined. The recorded text contains that release.
 */
function correctedRelease(plan: api.Plan): string | undefined {
  const texts = (plan.status?.commands ?? []).map(({ description = '' }) => description);
  const release = texts.flatMap((text) => removedIn(text) ?? [])[0];
  const versions = plan.spec.commands.flatMap(versionsOf);
  if (release === undefined || !versions.every((version) => isOlder(version, release)))
    return undefined;
  return `it was refused because of an API that ${release} removed, and now has ${listed(versions) || 'no version'}`;
}

/** Returns the Plan without its record, as if it were new. */
const asApplied = onceForEach(({ status: _recorded, ...applied }: api.Plan): api.Plan => applied);

/**
 * Returns a sentence about a node that a completed Plan lists although the record of the Plan does not contain it;
 * undefined if there is no such node. Only the record of a completed Plan contains all nodes, so a node that is missing
 * in another record may not be new.
 */
function addedTarget(plan: api.Plan, world: World): string | undefined {
  const added = addedNames(plan).flatMap(({ part, names }) => withoutOthers(part, names, world))[0];
  return added === undefined
    ? undefined
    : `${added} is listed now but was not part of the plan when it ended`;
}

/**
 * Returns for each part of the Plan the names that the part lists and that its record does not contain. The names are
 * computed once for each version of the Plan, because the lists are long and an ended Plan rarely changes.
 */
const addedNames = onceForEach(({ spec, status }: api.Plan) => {
  if (status?.state !== PLAN_STATES.completed) return [];
  return status.commands.flatMap((recorded) =>
    partsOf(spec.commands[recorded.id] ?? {}, recorded).map((part) => {
      const known = new Set(entriesIn(recorded, listOf(part)).map(({ name }) => name));
      const listedNow = part.targets?.discovery.static?.nodes ?? [];
      return { part, names: listedNow.filter((name) => !known.has(name)) };
    }),
  );
});

function newStages(plan: api.Plan, world: World, now: TurnTime): Stage[] {
  const { spec } = plan;
  const room = roomForTargets(plan);
  return spec.commands.flatMap((command, id) =>
    partsOf(command).map((part) => {
      const pending = namesOf(part, world).map((name) =>
        newTarget({ key: keyOf(id, part, name), name }, now),
      );
      return stageOf(part, id, pending, room);
    }),
  );
}

function namesOf(part: Part, world: World): string[] {
  return withoutOthers(part, discover(part.targets, part.role, world), world);
}

/**
 * Returns only the names that the part updates. A controller that is also a worker is updated as a controller, so it is
 * left out of the update of workers.
 */
function withoutOthers({ procedure, role, update }: Part, names: string[], world: World): string[] {
  const isUpdateOfWorkers = procedure === 'k0supdate' && role === 'worker';
  return isUpdateOfWorkers && names.length > 0
    ? withoutControllers(names, Object.keys(update?.platforms ?? {}), world)
    : names;
}

/**
 * Returns the recorded stages. The result includes the stages of commands that were removed from the plan, because
 * their targets may be in progress.
 */
export function recordedStages(plan: api.Plan): Stage[] {
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
    id: stageIdOf(command, { procedure, role }),
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

function stageIdOf(command: number, { procedure, role }: Pick<Part, 'procedure' | 'role'>): string {
  return `${command}/${procedure === 'airgapupdate' ? 'bundles' : `${role}s`}`;
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
  /** The update of the command in the spec; undefined if the command was removed from the plan. */
  readonly update: Update | undefined;
  readonly targets: api.TargetSpec | undefined;
}

/**
 * Returns the parts in the order in which they run: image bundles first, because releases need them, then controllers,
 * then workers.
 */
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

/**
 * Writes the rollout into the status with the words of the original, because scripts rely on these words. Unknown
 * fields stay. It also records the number of the run, except for the first run, and the spec of a rollout that ignores
 * edits.
 */
export function project(rollout: Rollout, plan: api.Plan): api.Plan {
  const record = withStatus(rollout, plan);
  const spec = specToRecord(rollout, plan);
  return spec === undefined ? record : withRecordedSpec(record, spec);
}

/** Returns the run and the spec to record; undefined for a first run that has followed every edit and keeps the id of the plan. */
function specToRecord(rollout: Rollout, plan: api.Plan): RecordedSpec | undefined {
  const { run } = rollout;
  const id = rollout.editedId === undefined ? undefined : rollout.id;
  const known = recordedSpecIn(withoutShards(plan));
  const present = plan.metadata.generation ?? run ?? 1;
  if (rollout.ignoresEdits === true)
    return known?.started === undefined
      ? { run, id, generation: present, started: startedSpecOf(plan) }
      : { run, id, generation: known.generation, started: known.started };
  if (run === undefined && rollout.generation === undefined && id === undefined) return undefined;
  // After the end of the plan, the recorded generation does not change, because the run did not use a spec that was
  // edited later.
  const wasOver = isFinal({ phase: phaseOfPlan(plan.status?.state) });
  const isKept = isFinal(rollout) && (wasOver || known?.started !== undefined);
  return { run, id, generation: isKept ? (rollout.generation ?? present) : present };
}

function withStatus(rollout: Rollout, plan: api.Plan): api.Plan {
  const state = planStateOf(rollout);
  const before = plan.status?.commands ?? [];
  // A plan without commands gets one entry, because the reason can be recorded only in an entry.
  const known = plan.spec.commands.slice(0, MOST_COMMANDS);
  const fresh = (known.length === 0 ? [{}] : known).map((_, id) => ({ id, state: '' }));
  // Each command of the first record keeps its entry, so that added and removed commands are detected.
  const entries: readonly api.CommandStatus[] = before.length > 0 ? before : fresh;
  const active = entries.find((entry) => !isCompleted(rollout, entry));
  const described = active ?? entries[0];
  const commands = entries.map((entry): api.CommandStatus => {
    const { description: _, ...rest } = withTargetsOf(rollout, entry);
    const open = entry.id === active?.id || isFinal(rollout) ? state : PLAN_STATES.schedulableWait;
    return {
      ...rest,
      state: isCompleted(rollout, entry) ? PLAN_STATES.completed : open,
      ...(entry.id === described?.id && rollout.reason
        ? { description: textOf(rollout.reason, rollout.phase) }
        : {}),
    };
  });
  return { ...plan, status: { ...plan.status, state, commands } };
}

/**
 * Returns true if the command is done. A command without stages never runs; it is done if another
 * leader recorded that.
 */
function isCompleted({ stages }: Rollout, { id, state }: api.CommandStatus): boolean {
  const own = stages.filter(({ command }) => command === id);
  if (own.length === 0) return state === PLAN_STATES.completed;
  return own.every(({ targets }) => targets.every((target) => target.state === 'done'));
}

/** Writes the targets of each stage to its list. A list without a stage does not change. */
function withTargetsOf({ stages }: Rollout, entry: api.CommandStatus): api.CommandStatus {
  let status = entry;
  for (const stage of stages) {
    if (stage.command !== entry.id || stage.targets.length === 0) continue;
    const list = listOf(stage);
    status = withEntries(status, list, statusOf(stage, entriesIn(entry, list)));
  }
  return status;
}

function statusOf({ targets }: Stage, recorded: readonly api.TargetStatus[]): api.TargetStatus[] {
  const byName = new Map(recorded.map((entry) => [entry.name, entry]));
  return targets.map(({ name, state, since }) => ({
    ...byName.get(name),
    name,
    state: TARGET_STATES[state],
    lastUpdatedTimestamp: since,
  }));
}
