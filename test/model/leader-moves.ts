/**
 * The next moves of leaders. There may be any number of leaders, and each leader may decide on any mixture of cached
 * versions.
 */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { idOfRecordedRun, recordedRunIn } from '../../src/dialects/autopilot/plan/recorded-run.ts';
import type { TargetReport } from '../../src/engine/model/facts.ts';
import { type Role } from '../../src/engine/model/rollout.ts';
import { withRunId } from '../../src/engine/model/runs.ts';
import {
  DEFAULT_POLICY,
  type RolloutPolicy,
  type WaveRule,
} from '../../src/engine/policy/rollout-policy.ts';
import { gather } from '../../src/engine/snapshot/gather.ts';
import { storedTargets } from '../../src/engine/snapshot/stored-targets.ts';
import { freshWorld, OwnWrites } from '../../src/engine/snapshot/world.ts';
import type { Hook, HookMoment } from '../../src/hooks/rules.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { sameJson } from '../../src/util/json.ts';
import {
  type Configuration,
  OLD as OLD_RELEASE,
  PINNED_LABEL,
  SECOND_WAVE,
  WAVE_LABEL,
} from './cluster.ts';
import { type HookJob, jobOf, PLACE_OF_PLAN_JOBS, resultsOf } from './hook-runs.ts';
import { type Deeds, type Leader, viewsOfRoles } from './leader.ts';
import { type Choice, choicesOf, type Holdings, isFresh, lagOf } from './leader-view.ts';
import { named, nameless } from './nameless.ts';
import { contentOf, objectAt } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import { isPolicyChanged } from './people.ts';
import { changeOf } from './plan-words.ts';
import { wordsFor } from './signal-words.ts';

type Deed =
  | { readonly kind: 'record'; readonly content: number }
  /** A request to write the object at this place. */
  | { readonly kind: 'ask'; readonly place: number; readonly content: number }
  | { readonly kind: 'drain'; readonly place: number }
  /** Asks the API server to create a Job, if there is none with its name. */
  | { readonly kind: 'hook'; readonly place: number; readonly job: HookJob };

export type LeaderMove = Deed & { readonly label: string; readonly fair: boolean };

interface Told {
  readonly deed: Deed;
  /** A description for people, which follows the words "a leader". */
  readonly words: string;
}

/** Leaders only compare resourceVersions. So one resourceVersion is enough to represent all old versions. */
const OLD = 1;
const NEWEST = 2;

/** The number of a content, and a resourceVersion that shows whether the content is the newest. */
type Seen = readonly [content: number, version: number];

function seenAt(versions: readonly number[], version: number): Seen {
  return [versions[version - 1] ?? 0, version === versions.length ? NEWEST : OLD];
}

/**
 * One version of one object, read together with one version of the plan. `plan` and `content` are numbers of contents.
 */
export interface Telling {
  readonly now: number;
  readonly plan: number;
  readonly place: number;
  readonly content: number;
  /** True if the plan records the target as done. Then the answer of its agent has no meaning any more. */
  readonly isDone?: boolean;
}

export class LeaderMoves {
  readonly #configuration: Configuration;
  readonly #contents: Numbering<KubeObject>;
  readonly #leader: Leader;
  readonly #moves = new Map<string, Promise<readonly LeaderMove[]>>();
  readonly #decisions = new Map<string, Promise<readonly Told[]>>();
  readonly #facts = new Map<string, string>();
  readonly #objects = new Map<string, KubeObject>();

  constructor(configuration: Configuration, contents: Numbering<KubeObject>, leader: Leader) {
    this.#configuration = configuration;
    this.#contents = contents;
    this.#leader = leader;
  }

  async of(holdings: Holdings): Promise<readonly LeaderMove[]> {
    const { now, plan, nodes, drains, hookJobs, down } = holdings;
    const key = [now, plan, ...nodes, drains, JSON.stringify(hookJobs), down].join('/');
    return await once(this.#moves, key, async () => {
      const moves = new Map<string, LeaderMove>();
      const tells = (seen: number, place: number, version: number): string =>
        this.tells({
          now,
          plan: plan[seen - 1] ?? 0,
          place,
          content: nodes[place]?.[version - 1] ?? 0,
        });
      for (const choice of choicesOf(holdings, tells)) {
        const fair = isFresh(choice, holdings);
        for (const { deed, words } of await this.#decide(choice, holdings)) {
          const done = JSON.stringify(deed);
          if (moves.has(done) && (!fair || moves.get(done)?.fair === true)) continue;
          moves.set(done, { ...deed, label: `a leader ${words}${lagOf(choice, holdings)}`, fair });
        }
      }
      return [...moves.values()];
    });
  }

  /** Returns the oldest resourceVersion that a leader may see, for an object with these contents. */
  oldestOf(versions: readonly number[]): number {
    if (this.#configuration.leaders === 'any') return 1;
    const signals = versions.map(
      (content) => this.#contents.valueOf(content).metadata.annotations?.[ROLLOUT_ANNOTATION],
    );
    return signals.indexOf(signals.at(-1)) + 1;
  }

  /**
   * Returns the facts about one node that the engine gathers, as text. Contains only those facts on which decisions
   * depend.
   */
  tells({ now, plan, place, content, isDone = false }: Telling): string {
    return once(this.#facts, [now, plan, place, content, isDone].join('/'), () => {
      const { role } = this.#configuration.nodes[place] ?? { role: 'worker' };
      const object = this.#objectAt(place, [content, NEWEST]);
      const seen = {
        controller: role === 'controller' ? [object] : [],
        worker: role === 'worker' ? [object] : [],
      };
      const alone = freshWorld(viewsOfRoles(seen), new OwnWrites());
      const planned = this.#contents.valueOf(plan) as Plan;
      const { rollout, targets, ...more } = gather(autopilot, planned, alone, now);
      const gathered = {
        ...more,
        facts: [...storedTargets(rollout, targets).facts],
      };
      return JSON.stringify(gathered, (name, value: unknown) => {
        if (name === 'report') return (value as TargetReport | undefined)?.rolledBack;
        return IRRELEVANT.has(name) || (isDone && name === 'observation') ? undefined : value;
      });
    });
  }

  /**
   * Returns the writes of a leader with this view. Leaves out writes to objects that have changed since the version
   * that the leader read, because the API server refuses these writes.
   */
  async #decide(choice: Choice, { now, plan, nodes }: Holdings): Promise<readonly Told[]> {
    const { drains, hookJobs, down, watchedMs } = choice;
    const planSeen = seenAt(plan, choice.plan);
    const seen = nodes.map((versions, place) => seenAt(versions, choice.nodes[place] ?? 0));
    const jobs = JSON.stringify(hookJobs);
    const key = [now, planSeen, plan.at(-1), ...seen, drains, jobs, down, watchedMs].join('/');
    return await once(this.#decisions, key, async () => {
      const current = this.#planAt([plan.at(-1) ?? 0, NEWEST]);
      const objects: Record<Role, KubeObject[]> = { controller: [], worker: [] };
      const newest = new Map<string, KubeObject>();
      this.#configuration.nodes.forEach(({ name, role }, place) => {
        objects[role].push(this.#objectAt(place, seen[place] ?? [0, OLD]));
        newest.set(name, this.#objectAt(place, [nodes[place]?.at(-1) ?? 0, NEWEST]));
      });
      const names = this.#configuration.nodes.map(({ name }) => name);
      const known = drains.flatMap((kind, place) =>
        kind ? [[names[place] ?? '', kind] as const] : [],
      );
      const deeds = await this.#leader({
        plan: this.#planAt(planSeen),
        current,
        objects,
        newest,
        drains: new Map(known),
        hookResults: hookJobs.flatMap(resultsOf),
        drainDelegation: this.#configuration.cordoner === 'leader',
        down,
        now,
        watchedMs,
        policy: policyFor(this.#configuration, this.#planAt(planSeen)),
      });
      return this.#told(deeds, current, newest);
    });
  }

  #told(
    { begun, writes, hookRuns }: Deeds,
    current: Plan,
    newest: ReadonlyMap<string, KubeObject>,
  ): Told[] {
    const placeOf = (name: string): number =>
      this.#configuration.nodes.findIndex((node) => node.name === name);
    const drains = begun.map((name): Told => {
      return { deed: { kind: 'drain', place: placeOf(name) }, words: `begins to drain ${name}` };
    });
    const accepted = writes.filter((object) => versionOf(object) === NEWEST);
    return [
      ...drains,
      ...hookRuns.map((run): Told => {
        const { node } = run;
        const place = node === undefined ? PLACE_OF_PLAN_JOBS : placeOf(node);
        const deed = { kind: 'hook', place, job: jobOf(run) } as const;
        return { deed, words: `creates the Job ${run.hook.when} of ${node ?? 'the plan'}` };
      }),
      ...accepted.map((object): Told => {
        const { name } = object.metadata;
        const place = placeOf(name);
        if (place < 0) return this.#recorded(object as Plan, current);
        const content = contentOf(this.#contents, nameless(object, name));
        const words = `asks to ${wordsFor(newest.get(name) ?? object, object)}`;
        return { deed: { kind: 'ask', place, content }, words };
      }),
    ];
  }

  /**
   * A write of the status changes nothing else. An order for another attempt changes only annotations. A changed spec
   * is the roll-back plan: the API server increases the generation and keeps the status.
   */
  #recorded({ spec, status, metadata: { annotations } }: Plan, current: Plan): Told {
    if (!sameJson(spec, current.spec)) {
      const generation = (current.metadata.generation ?? 1) + 1;
      const metadata = { ...current.metadata, ...(annotations && { annotations }), generation };
      const rewritten: Plan = { ...current, metadata, spec };
      const content = contentOf(this.#contents, rewritten);
      return { deed: { kind: 'record', content }, words: 'writes the way back' };
    }
    const isOrder = !sameJson(annotations, current.metadata.annotations);
    const written: Plan = isOrder
      ? { ...current, metadata: { ...current.metadata, ...(annotations && { annotations }) } }
      : this.#named({ ...current, ...(status && { status }) });
    return {
      deed: { kind: 'record', content: contentOf(this.#contents, written) },
      words: isOrder ? 'orders the next attempt' : changeOf(current, written),
    };
  }

  /** Returns the plan with the id of its run, which the leader writes right after the admission. */
  #named(plan: Plan): Plan {
    if (this.#configuration.namesRuns !== true) return plan;
    return withRunId(plan, { id: idOfRecordedRun(plan), run: recordedRunIn(plan)?.run });
  }

  #planAt([content, version]: Seen): Plan {
    return objectAt(this.#contents, [content, content], version) as Plan;
  }

  /** Returns the object with the name of the node at the place. */
  #objectAt(place: number, [content, version]: Seen): KubeObject {
    return once(this.#objects, `${place}/${content}/${version}`, () =>
      named(
        objectAt(this.#contents, [content, content], version),
        this.#configuration.nodes[place]?.name ?? '',
      ),
    );
  }
}

/**
 * Returns the policy of the plan. Sets only the deadline of the whole target. The steps have no deadlines, because the time between two moments of the
 * model's clock has no fixed length.
 */
export function policyFor(configuration: Configuration, plan: Plan): RolloutPolicy {
  const { nodes, targetDeadlineMs, changedRules } = configuration;
  const rules =
    changedRules !== undefined && isPolicyChanged(plan) ? changedRules : configuration.rules;
  const { maxFailures = configuration.maxFailures } = rules;
  const ms = Infinity;
  const stepDeadlines = { answer: ms, download: ms, drain: ms, apply: ms, restart: ms, ready: ms };
  const inWave = (wave: number): WaveRule => ({
    selector: { matchLabels: { [WAVE_LABEL]: String(wave) } },
    needsApproval: rules.waves === 'approved' && wave === SECOND_WAVE,
  });
  const pinned = { selector: { matchLabels: { [PINNED_LABEL]: 'true' } }, version: OLD_RELEASE };
  return {
    ...DEFAULT_POLICY,
    maxFailures,
    targetDeadlineMs,
    stepDeadlines,
    ...(rules.waves && { waves: [inWave(1), inWave(SECOND_WAVE)] }),
    ...(nodes.some(({ isPinned }) => isPinned) && { pins: [pinned] }),
    ...(rules.leavesOutHeld === true && { leavesOutHeld: true }),
    ...(rules.retry && { retry: rules.retry }),
    ...(rules.hooks && { hooks: rules.hooks.map(hookAt) }),
    ...(rules.pausesOnFailure === true && { pausesOnFailure: true }),
    ...(rules.rollsBackOnFailure === true && { rollsBackOnFailure: true }),
    ...(rules.restartsEdited === true && { restartsEdited: true }),
  };
}

/** Returns a hook that runs a Job at the moment. */
export function hookAt(when: HookMoment): Hook {
  const action = {
    kind: 'job',
    namespace: 'hooks',
    template: { spec: {} },
    pinToNode: false,
    retries: 0,
  } as const;
  return { name: when.toLowerCase(), when, action, timeoutMs: 60_000 };
}

/**
 * Facts that don't influence any decision in the model. Of a report, only the success of the roll-back matters. The
 * demands of an ended plan, and whether a node differs from them, are only shown to people, because no policy of the
 * model lets an edit start a new rollout.
 */
const IRRELEVANT: ReadonlySet<string> = new Set([
  'step',
  'since',
  'asked',
  'isBehind',
  'usualMs',
  'fastMs',
]);

/**
 * Returns the resourceVersion that a write requires. A write without it is a mistake, because it would take effect
 * whatever happened since.
 */
function versionOf({ metadata: { name, resourceVersion } }: KubeObject): number {
  if (resourceVersion === undefined)
    throw new Error(`a write of ${name} without a resourceVersion`);
  return Number(resourceVersion);
}
