/**
 * The contract of a procedure: how the agent upgrades a host whose versions another product than k0s installs. The
 * product implements it, and the agent knows no more about the product than this.
 */
import type { KubeClient } from '../kube/client.ts';
import type { AgentPresence } from '../signal/agent-presence.ts';
import type { SignalCommand } from '../signal/annotations.ts';
import type { Tools } from '../util/tools.ts';
import type { DownloadLimits } from './download/fetch.ts';
import type { ActiveJournal } from './journal.ts';
import type { ReportReason } from './object/reason-report.ts';
import type { AgentOptions } from './options.ts';
import type { Step, StepOutcome } from './steps/step.ts';

export interface HostProcedure {
  /** The name that the agent announces, so that leaders know what the agent can upgrade. */
  readonly name: NonNullable<AgentPresence['procedure']>;
  /** The kinds of commands that the procedure carries out. */
  readonly accepts: readonly SignalCommand['kind'][];
  /** Carries out one step. Rejects only when `abort` aborts; every other failure is an outcome. */
  readonly perform: (
    step: Step,
    journal: ActiveJournal,
    tools: ProcedureTools,
    abort: AbortSignal,
  ) => Promise<StepOutcome>;
}

/** What the agent lends to the procedure. */
export interface ProcedureTools extends Tools {
  readonly client: Pick<KubeClient, 'get' | 'listAll' | 'raw'>;
  readonly userAgent: string;
  readonly limits: DownloadLimits;
  /** The directory of the procedure for downloads. */
  readonly directory: string;
  /** The root directory of the host. Scripts get it as REFIT_ROOT. Paths in scripts do not include it. */
  readonly root: string;
  readonly reportReason: ReportReason;
}

/**
 * Looks at the host of this Node, and resolves with the procedure for it. Rejects with a RefitError if the product is not
 * on the host, or if the procedure cannot trust it.
 */
export type FindProcedure = (
  node: string,
  host: { readonly root: string; readonly options: AgentOptions },
  abort: AbortSignal,
) => Promise<HostProcedure>;
