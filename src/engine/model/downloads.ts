/** The types for what is known about the downloads of one target. */
import type { AgentPolicy } from '../../signal/annotations.ts';

/**
 * Says whether a target downloads its files before it starts. possible: the target was not asked yet · asked: the
 * target was asked for the present payload · outdated: the target has an earlier request of this rollout that is no
 * longer wanted.
 */
export type PrefetchState = 'possible' | 'asked' | 'outdated';

/**
 * What is known about a download that a target must complete before its node is cordoned. unasked: the target must be asked ·
 * asked: the download runs, or waits because of the `problem` · outdated: the target has a request for another payload ·
 * failed: the last download failed at `since`, in RFC 3339 · done: the payload is on the node.
 */
export type RequiredDownload =
  | { readonly kind: 'unasked' | 'outdated' | 'done' }
  | {
      readonly kind: 'asked';
      /** A clause that says why the download makes no progress; undefined if nothing is known to be wrong. */
      readonly problem?: string | undefined;
      /** True if an earlier download of the same payload has failed. */
      readonly isRetry?: boolean | undefined;
    }
  | { readonly kind: 'failed'; readonly problem: string; readonly since: string };

/** The answer of the agent to the question whether the target can download the files that it needs. */
export interface DownloadState {
  readonly answer: 'unasked' | 'asked' | 'possible' | 'impossible';
  readonly policy?: AgentPolicy | undefined;
  readonly problem?: string | undefined;
  /** The size of the largest file; undefined if the agent was not asked, or the server does not say. */
  readonly bytes?: number | undefined;
  /** The node has room for at least this number of bytes. Agents report this number even if nobody has asked them about downloads. */
  readonly room?: number | undefined;
}
