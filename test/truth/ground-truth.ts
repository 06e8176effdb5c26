/**
 * What really happened in a sequence. The labs write it where it happens: on the hosts, and where a leader admits a run.
 * No surface of the product reads it.
 */

/** A version to which an upgrade has taken a host. */
export interface Accepted {
  readonly node: string;
  readonly version: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** One failure that a host has reported. */
export interface HostFailure {
  readonly node: string;
  /** The words of the host. */
  readonly why: string;
}

export class GroundTruth {
  /** The version that each host runs now. */
  readonly runs = new Map<string, string>();
  /** The changes of the version of a host by an upgrade, in order. */
  readonly accepted: Accepted[] = [];
  /** The failures of hosts, in order. A host that is tried again may fail again. */
  readonly failures: HostFailure[] = [];
  /** Every host that has ever been part of the cluster. */
  readonly hosts = new Set<string>();
  /** The hosts that were removed from the cluster and have not come back. */
  readonly lost = new Set<string>();
  /** The number of runs that leaders have admitted, by the uid of the plan. */
  readonly admitted = new Map<string, number>();
  /** The plans that roll an earlier run back, by uid, and since when, in milliseconds since the Unix epoch. */
  readonly rollBacks = new Map<string, number>();
  /** True while a leader runs. */
  isLed = true;

  readonly #ran = new Map<string, string[]>();

  /** Records a new host, or what a person has installed on a host. */
  install(node: string, version: string): void {
    this.hosts.add(node);
    this.lost.delete(node);
    this.runs.set(node, version);
    this.#remember(node, version);
  }

  /** Records the upgrades that hosts have made since the last call, as `runs` shows them. */
  noticeUpgrades(now: number): void {
    for (const [node, version] of this.runs) {
      if (this.#ran.get(node)?.at(-1) === version) continue;
      this.#remember(node, version);
      this.accepted.push({ node, version, at: now });
    }
  }

  #remember(node: string, version: string): void {
    this.#ran.set(node, [...this.everRan(node), version]);
  }

  /** Returns all versions that the host has run. */
  everRan(node: string): readonly string[] {
    return this.#ran.get(node) ?? [];
  }

  get runsAdmitted(): number {
    return this.admitted.values().reduce((sum, count) => sum + count, 0);
  }

  fail(node: string, why: string): void {
    this.failures.push({ node, why });
  }

  /** Returns the words with which the host has failed last; undefined if it has never failed. */
  whyFailed(node: string): string | undefined {
    return this.failures.findLast((each) => each.node === node)?.why;
  }
}
