/** The type for how the leader could roll a failed run back. */
import type { KubeObject } from '../../kube/resources.ts';

export type PossibleRollBack =
  | 'unrecorded'
  | { readonly byHand: string }
  | { readonly awaits: string; readonly leftMs: number }
  | { readonly obstacle: string }
  | { readonly plan: KubeObject; readonly names: readonly string[] };
