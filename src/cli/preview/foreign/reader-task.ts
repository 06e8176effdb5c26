/** Defines what the main thread and the worker thread that reads the text of a viewer tell each other. */
import type { UpgradePolicy } from '../../../api/refit/upgrade-policy.ts';
import type { KubeObject } from '../../../kube/resources.ts';

export interface ReaderTask {
  readonly text: string;
  /** The words that name the text in messages. */
  readonly place: string;
  readonly mostPlans: number;
  /** The maximum number of characters of the answer, which is JSON. */
  readonly longestAnswer: number;
}

export type ReaderAnswer =
  | { readonly problems: readonly string[] }
  | {
      readonly plans: readonly {
        readonly place: string;
        readonly plural: string;
        readonly group: string;
        readonly object: KubeObject;
      }[];
      readonly policies: readonly UpgradePolicy[];
    };
