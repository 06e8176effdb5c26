/** One row of the table of scenes: what an upgrade does in every dialect, or that a policy says that it does not. */
import type { UpgradePolicySpec } from '../../../src/api/refit/upgrade-policy.ts';
import type { PolicyField } from '../../../src/engine/policy/policy-effects.ts';
import type { DialectName, DialectUnderTest, Setting, World } from '../world.ts';

/** Plays a scene, and fails if something else happens than the scene expects. */
export type Play = (world: World) => Promise<void>;

export interface TableScene {
  /** A sentence that is the title of the test. */
  readonly name: string;
  /** The numbers of the features that the scene proves. */
  readonly features: readonly number[];
  readonly setting?: Setting;
  /** The policy at the begin; absent if the scene needs none. */
  readonly policy?: UpgradePolicySpec | ((dialect: DialectUnderTest) => UpgradePolicySpec);
  /**
   * The fields of the policy that the scene is about. In a dialect in which one of them has no effect, the scene is that
   * people are told so.
   */
  readonly fields?: readonly PolicyField[];
  /** What happens before the upgrade begins. */
  readonly before?: Play;
  /** What happens once the upgrade has begun. */
  readonly play: Play;
  /** What happens instead in a dialect that does it in another way. */
  readonly instead?: Partial<Readonly<Record<DialectName, Play>>>;
}

/** The seconds in which each cluster would begin the next node, if nothing forbade it. */
export const LONG_ENOUGH = 45;

/** Returns a rule for a wave with the node that the dialect starts first. */
export function firstAlone(dialect: Pick<DialectUnderTest, 'nodes' | 'isChosenElsewhere'>) {
  // Cluster API chooses the Machines, so only their number can be given.
  return dialect.isChosenElsewhere === true ? { count: 1 } : { selector: only(dialect.nodes[0]) };
}

/** Selects the node with this name, in every dialect. */
export function only(node: string) {
  return { matchLabels: { 'kubernetes.io/hostname': node } };
}
