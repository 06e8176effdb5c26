/** The contract of `refit upgrade` for one dialect. */
import type { KubeObject } from '../../kube/resources.ts';
import type { AccessQuestion } from '../../ready/access.ts';
import type { DialectReadiness } from '../../ready/context.ts';
import type { Accepted } from '../../ready/finding.ts';
import type { DryRunFlags } from '../controls/dry-run.ts';
import type { ConnectionFlags } from '../options.ts';
import type { Session } from '../status/status-session.ts';
import type { CommandParts } from './object-commands.ts';
import type { ReadyTargetWay } from './ready-target.ts';
import type { SessionDialect } from './session-dialect.ts';

export interface UpgradeFlags extends ConnectionFlags, DryRunFlags {
  /** The dialect that is meant, if several could give the version. */
  readonly dialect?: string;
  /** The plan to write, such as `plan/autopilot`. */
  readonly plan?: string;
  /** Where the files of the new version are published. */
  readonly from?: string;
  /** The manifest of a kubeadm cluster. */
  readonly manifest?: string;
  /** The Cluster of Cluster API. */
  readonly cluster?: string;
  readonly namespace?: string;
  readonly yes?: boolean;
  readonly ready?: boolean;
  readonly accept?: readonly string[];
  readonly output?: 'yaml';
}

/** What `refit upgrade` writes for one version, after it has shown it. */
export interface UpgradeDraft {
  /** The objects as they will be, in the order in which they are written. */
  readonly objects: readonly KubeObject[];
  /** Sentences about what is written and where it comes from. */
  readonly said: readonly string[];
  /** The rights that the writes need. */
  readonly needs: readonly AccessQuestion[];
  /** The commands of kubectl that would do the same. */
  readonly kubectl: readonly string[];
  /** Prints what the upgrade would do. Resolves with the reasons why it must not start; with none if it may. */
  preview(): Promise<readonly string[]>;
  /** Writes the objects. With `dryRun`, the API server checks the writes and stores nothing. */
  write(dryRun: boolean): Promise<void>;
  /** Sentences about what the user does after the writes. */
  readonly next: readonly string[];
}

/** One thing in the cluster that can get another version. */
export interface UpgradeChoice {
  /** The flags that choose it, such as `--dialect autopilot`. */
  readonly words: string;
  /** Rejects if the version cannot be written now: a rollout runs, or nothing is left to do. */
  draft(version: string): Promise<UpgradeDraft>;
}

/** What the preview and the checks of `refit ready` need of a dialect. */
interface UpgradeDialect extends SessionDialect {
  readiness(): Promise<DialectReadiness>;
  readonly readyTarget: ReadyTargetWay | undefined;
  readonly upgrade: UpgradeWay;
}

export interface UpgradeParts extends CommandParts {
  readonly modules: readonly UpgradeDialect[];
  /** The checks whose blockers do not stop the upgrade. */
  readonly accepted?: Accepted;
  /** The environment variables that name the proxies. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** What a dialect knows when it drafts an upgrade. */
export interface UpgradeSituation {
  readonly session: Session;
  readonly flags: UpgradeFlags;
  readonly parts: UpgradeParts;
}

/** Resolves with what the flags let the user choose in the cluster; with none if nothing there is of this dialect. */
export type UpgradeChoices = (
  session: Session,
  flags: UpgradeFlags,
  parts: UpgradeParts,
) => Promise<readonly UpgradeChoice[]>;

/** Writes the version into a file. Resolves with the exit code. */
export type UpgradeFile = (
  version: string,
  flags: UpgradeFlags,
  parts: CommandParts & Pick<UpgradeParts, 'environment'>,
) => Promise<number>;

/** How the clusters of a dialect get another version: by objects in the cluster, or by the file that --manifest names. */
export type UpgradeWay =
  | { readonly kind: 'objects'; load(): Promise<UpgradeChoices> }
  | { readonly kind: 'file'; load(): Promise<UpgradeFile> };
