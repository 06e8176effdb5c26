/** The input of predicates: one state in full. */
import type { KubeObject } from '../../src/kube/resources.ts';
import type { SignalData } from '../../src/signal/annotations.ts';
import type { NodeSpec } from './cluster.ts';
import type { NodeState } from './node-state.ts';
import type { Recorded } from './plan-words.ts';

export interface Glance {
  /** The id of the plan. */
  readonly run: string;
  /** The run that the plan takes back; undefined where it takes none back. */
  readonly rollsBack: string | undefined;
  /** The generation of the plan: one more after each change of its spec. */
  readonly generation: number;
  /** What its commands bring. */
  readonly versions: readonly string[];
  /** The state that its status tells. */
  readonly state: string | undefined;
  readonly isAborted: boolean;
  /** True once somebody has approved the second wave. */
  readonly isApproved: boolean;
  /** Names of targets that somebody ordered to try again. */
  readonly triedAgain: readonly string[];
  /** What its status says of each target of each command. */
  readonly recorded: readonly Recorded[];
  readonly nodes: readonly NodeGlance[];
}

export interface NodeGlance extends NodeState {
  readonly spec: NodeSpec;
  /** As the API server has it. */
  readonly object: KubeObject;
  /** What that carries. */
  readonly signal: SignalData | undefined;
}
