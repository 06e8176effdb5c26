/** Defines what the checks read, and what each dialect contributes. */
import type { ReadingCheck } from '../health/ask-check.ts';
import type { CheckFinding, HealthCheck } from '../health/checks.ts';
import type { Setting } from '../versions/settings.ts';
import type { AskServers } from './api-servers.ts';
import type { Asking, ReadResult } from './asking.ts';
import type { FoundBy } from './finding.ts';

/** A setting, and the object that has it, such as `ConfigMap kube-system/kubelet-config`. */
export interface PlacedSetting extends Setting {
  readonly object: string;
}

/** What a place with settings says. */
export interface SettingsFound {
  readonly settings: readonly PlacedSetting[];
  /** The places that were read, as they are called in a sentence. */
  readonly places: readonly string[];
  /** The findings about places that could not be read. */
  readonly unread: readonly FoundBy[];
}

/** Returns what several places say together. */
export function together(found: readonly SettingsFound[]): SettingsFound {
  return {
    settings: found.flatMap(({ settings }) => settings),
    places: found.flatMap(({ places }) => places),
    unread: found.flatMap(({ unread }) => unread),
  };
}

/** Returns what a place says that was read. `object` is its name. */
export function readPlace(object: string, settings: readonly Setting[]): SettingsFound {
  const placed = settings.map((each) => ({ ...each, object }));
  return { settings: placed, places: [object], unread: [] };
}

/** Returns that a place could not be read. `object` is its name. */
export function unreadPlace(object: string, why: string): SettingsFound {
  const message = `its flags and feature gates: ${why}`;
  return { settings: [], places: [], unread: [{ state: 'unknown', object, message }] };
}

/** How long the drain of a node may take before the upgrade goes on without it, or why nobody can tell. */
export type DrainLimit =
  | { readonly kind: 'limit'; readonly seconds: number }
  | { readonly kind: 'unknown'; readonly why: string };

/** What only one dialect knows about a cluster. */
export interface DialectReadiness {
  /**
   * Resolves with the names of the Nodes that plans upgrade and no plan drains. Absent if each upgrade of this dialect drains
   * its node unless a policy says otherwise.
   */
  undrained?(asking: Asking): Promise<ReadonlySet<string>>;
  /**
   * Resolves with the limits of drains by the names of Nodes. A Node without an entry has no limit. Absent if this dialect
   * knows no limits but those of policies.
   */
  drainLimits?(asking: Asking): Promise<ReadonlyMap<string, DrainLimit>>;
  /**
   * Resolves with the names of the Nodes whose hosts say themselves whether they use cgroup v1. What they say is judged
   * with the machines. Absent if this dialect asks no hosts.
   */
  cgroupsTold?(asking: Asking): Promise<ReadonlySet<string>>;
  /** Resolves with the flags and feature gates that the products of this dialect set for the components of Kubernetes. */
  settings(asking: Asking): Promise<SettingsFound>;
  /**
   * Resolves with what stands in the way of the version `to` on the machines: what the agents of this dialect say, and what
   * the product needs on its nodes. Resolves with none if nothing is known about them.
   */
  machines(asking: Asking, to: string): Promise<readonly FoundBy[]>;
}

/** A health check, and the name of the UpgradePolicy that has it. */
export interface PolicyCheck {
  readonly policy: string;
  readonly check: HealthCheck;
}

export interface ReadyContext extends Asking {
  readonly askServers: AskServers;
  /** The version to which the cluster is to go. */
  readonly to: string;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** True if the stored releases of Helm may be read, too. They are Secrets or ConfigMaps. */
  readonly readsHelmReleases: boolean;
  readonly dialects: readonly DialectReadiness[];
  /** What else is asked about the machines and the objects on which an upgrade stands. */
  readonly groundChecks: readonly Check[];
  /** The health checks of all policies. */
  readonly policyChecks: ReadResult<readonly PolicyCheck[]>;
  /** Makes one health check. Rejects if the server gives no usable answer. */
  readonly askCheck: (check: ReadingCheck) => Promise<CheckFinding>;
  /** Throws if the command is interrupted. */
  readonly abortIfAsked: () => void;
}

/** One check. It rejects only if the command is interrupted. */
export type Check = (context: ReadyContext) => Promise<readonly FoundBy[]>;
