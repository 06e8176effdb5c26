/** Opens the session of a command that reads plans: a connection, and the plans of all dialects that the cluster has. */

import { cordonOwner } from '../../drain/cordon-marks.ts';
import { withStages } from '../../engine/model/rollout.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { type AskReadyz, askControlPlane } from '../../engine/snapshot/api-server-health.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { type ClusterFlags, loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { nodes } from '../../kube/resources.ts';
import { ifFound, isForbidden, isNotFound } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { askerOf } from '../../kube/transport/readyz.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import type { LeaseName, SessionDialect } from '../contract/session-dialect.ts';
import type { ConnectionFlags } from '../options.ts';
import { type AskControlPlane, sourcesOf } from './inspection-sources.ts';
import type { ShownStatus } from './json-form.ts';
import { withLeaderless } from './leaderless.ts';
import {
  askLeader,
  installedOf,
  type LeaderReading,
  type Loaded,
  loadOnce,
  loadPolicies,
} from './load.ts';
import { inspectAll, observe, type ViewParts } from './observe.ts';
import { noPlan, type PlanFilter } from './plan-names.ts';
import { titleOf } from './text.ts';
import { type TextsOf, textsIn } from './texts-of.ts';

export interface SessionParts extends CommandParts {
  /** The dialects whose plans the session reads. */
  readonly modules: readonly SessionDialect[];
  readonly askThrough?: (ask: AskReadyz) => AskReadyz;
  /** Called with the error of each dialect whose objects the user may not read. If it is not set, such an error ends the session. */
  readonly onDenied?: ((error: unknown) => void) | undefined;
  /** True if the command can do something in a cluster that serves no kind of plans. */
  readonly worksWithoutPlans?: boolean;
}

export interface Session extends LeaderReading {
  readonly config: ClusterConfig;
  readonly contact: Contact;
  readonly viewParts: ViewParts;
  /** The objects of each dialect that the cluster has, read at the start of the session. */
  readonly loaded: readonly Loaded[];
}

const READYZ_TIMEOUT_MS = 3000;

export async function connect(flags: ClusterFlags, userAgent: string) {
  return createClient(await loadChosenCluster(flags), { userAgent });
}

/**
 * Runs `work` with a session, and closes the client afterwards. It lists all objects first, even for a watch, because a list fails at once
 * and an informer retries forever.
 */
export async function inSession<T>(
  flags: ConnectionFlags & PlanFilter,
  {
    modules,
    clock,
    abort,
    askThrough,
    onDenied,
    worksWithoutPlans = false,
  }: Omit<SessionParts, 'output'>,
  userAgent: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const config = await loadChosenCluster(flags);
  const contact = contactWith(clock);
  using client = createClient(config, { userAgent, onRequest: (record) => contact.note(record) });
  const askHost = askerOf(config);
  const readyz = { port: flags.apiPort, deadlineMs: READYZ_TIMEOUT_MS };
  const direct: AskReadyz = async (host) => await askHost(host, readyz);
  const ask: AskControlPlane = async (endpoints) =>
    await askControlPlane(endpoints, askThrough?.(direct) ?? direct);
  const reading = { client, abort };
  const dialects = await Promise.all(modules.map(async (each) => await each.view()));
  const installed = await installedOf(reading, dialects);
  const all = await Promise.all(
    installed.map(
      async (dialect) =>
        await loadOnce(client, dialect, abort).catch((error: unknown) => {
          if (worksWithoutPlans && isNotFound(error)) return undefined;
          if (onDenied === undefined || !isForbidden(error)) throw error;
          onDenied(error);
          return undefined;
        }),
    ),
  );
  const loaded = all.filter((each) => each !== undefined);
  const policies = await loadPolicies(reading);
  const sources = sourcesOf(client, ask, clock, abort);
  const viewParts = { sources, policies, textsOf: textsIn(modules), filter: flags };
  return await work({ ...reading, config, lease: leaseOf(modules), contact, viewParts, loaded });
}

/** Returns the Lease of the leader; undefined if no dialect has a known one. */
export function leaseOf(modules: SessionParts['modules']): LeaseName | undefined {
  return modules.map(({ process }) => process.lease).find((each) => each !== undefined);
}

/** Returns the view of all plans that match the filter. Rejects with REFIT_CONTROL if a filter is set and no plan matches. */
export async function observeOnce(session: Session, now: number): Promise<ShownStatus> {
  const { viewParts, loaded } = session;
  const leader = await askLeader(session, now);
  const plans = (
    await Promise.all(loaded.map(async (each) => await observe(each, viewParts, now)))
  ).flat();
  const { namespace, plan, dialect } = viewParts.filter ?? {};
  if (plans.length === 0 && (namespace ?? plan ?? dialect) !== undefined) {
    const existing = await inspectAll(loaded, { ...viewParts, filter: {} }, now);
    const named = [...existing.inspections, ...existing.unreadable];
    throw new RefitError('REFIT_CONTROL', noPlan(named, viewParts.filter));
  }
  const orphaned = orphanedIn(loaded, viewParts.textsOf);
  return withLeaderless({ leader, lease: session.lease, orphaned, plans });
}

/** Returns all plans of the cluster, even those that Refit cannot read. */
export function plansIn(loaded: readonly Loaded[]) {
  return loaded.flatMap(({ dialect, ...each }) => each.plans().map((plan) => ({ dialect, plan })));
}

/** Returns the names of nodes that are still cordoned for a deleted plan whose leader the session can see. */
export function orphanedIn(loaded: readonly Loaded[], textsOf: TextsOf): string[] {
  const ours = loaded.filter(({ dialect }) => textsOf(dialect.name).process.lease !== undefined);
  return ours.flatMap(({ dialect, world, ...loaded }) => {
    const orphaned = dialect.orphanedWork?.plans(world, loaded.plans()) ?? [];
    const cordoned = new Set(
      world.list(nodes).flatMap((node) => (cordonOwner(node) ? node.metadata.name : [])),
    );
    const targets = orphaned.flatMap(({ rollout }) => withStages(rollout));
    return targets.flatMap(({ target: { name } }) => (cordoned.has(name) ? [name] : []));
  });
}

/**
 * Rejects with REFIT_INSTALL if a plan has not ended: after the controller is removed, no process would remove the cordons of that plan.
 * Resolves if the cluster does not serve the kind of plans.
 */
export async function assertNoOpenPlan(
  flags: ConnectionFlags,
  parts: Omit<SessionParts, 'output'>,
): Promise<void> {
  const check = inSession(flags, parts, 'refit-install', async (session) => {
    const open = (await observeOnce(session, parts.clock.now())).plans.find(isOpenPlan);
    if (!open) return;
    const hint =
      'wait for its end with `refit status --watch`, or end it with `refit abort`; then run this again';
    throw new RefitError('REFIT_INSTALL', `${titleOf(open)} has not ended`, { hint });
  });
  await ifFound(check);
}

interface Contact {
  /** Records the end of one request. `code` is the HTTP status, or 0 if there was no answer. */
  note(answer: { readonly code: number }): void;
  /** True if the last answer refused the credentials of the user, which may have expired. */
  readonly isLoggedOut: boolean;
  /** RFC 3339 time since when no request was answered; undefined if the last one was answered. */
  readonly silentSince: string | undefined;
}

/** Records whether the API server answers. A watch that lost the connection shows old data, and must say so. */
export function contactWith(clock: Clock): Contact {
  let lostAt: number | undefined;
  let last = 0;
  return {
    note({ code }: { readonly code: number }): void {
      last = code;
      lostAt = code === 0 || code >= 500 ? (lostAt ?? clock.now()) : undefined;
    },
    get isLoggedOut() {
      return last === 401;
    },
    get silentSince() {
      return lostAt === undefined ? undefined : rfc3339(lostAt);
    },
  };
}
