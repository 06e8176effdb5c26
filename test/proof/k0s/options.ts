/** The options that the command passes to the process inside the operator's namespaces. */
import type { PartPlace } from '../machines/whole-proof.ts';

export const SCENES = [
  'upgrade',
  'mixtures',
  'migrate',
  'faults',
  'policy',
  'back',
  'updates',
  'long',
  'recordings',
] as const;

export type SceneName = (typeof SCENES)[number];

/** An executable of k0s, and the version that it reports. */
export interface Release {
  readonly version: string;
  readonly executable: string;
}

export interface InsideOptions extends PartPlace {
  readonly part: SceneName;
  readonly workers: number;
  /** The release that is installed first, the release that it is upgraded to, and the releases after that. */
  readonly from: Release;
  readonly to: Release;
  readonly later: readonly Release[];
  /** Releases whose kubelet or whose controller manager never starts. */
  readonly withoutKubelet?: Release;
  readonly withoutManager?: Release;
  /** The folder into which `recordings` writes. */
  readonly record?: string;
  /** How often `upgrade` compares Refit with k0s. */
  readonly pairs: number;
  readonly parts: string;
  /** The binary of Refit, as in a release. */
  readonly refit: string;
  /** The folder for the logs of the machines. */
  readonly logs: string;
}
