/**
 * A small kubelet for tests: runs the containers of pods on its Node as processes below a directory, and reports the
 * status of the pods and of the Node.
 */

import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { nodes, type Pod, pods } from '../../src/kube/resources.ts';
import { isConflict, isNotFound } from '../../src/kube/status-error.ts';
import { createInformer, type Informer } from '../../src/kube/watch/informer.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { PodRun, type PodRunParts } from './pod-run.ts';
import { specOf } from './pod-spec.ts';

export interface KubeletOptions extends Pick<PodRunParts, 'images'> {
  /** A client with the rights of the Node. The Node must already exist. */
  readonly client: KubeClient;
  readonly name: string;
  /** The directory for the pods and, in `root`, for the machine's files. The caller removes it. */
  readonly directory: string;
  readonly version: string;
}

/** Much less than the 50 s after which the controller manager marks a node without heartbeats as NotReady. */
const HEARTBEAT_MS = 10_000;
const ROOM = { cpu: '8', memory: '16Gi', pods: '110' };

/** One machine. It is on from its start until `stop`, except during its reboots. */
export class Kubelet {
  readonly name: string;
  /** The directory that containers see as the root directory of the host. */
  readonly root: string;
  bootId = randomUUID();
  readonly #options: KubeletOptions;
  readonly #informer: Informer<Pod>;
  readonly #runs = new Map<string, PodRun>();
  readonly #stopping = new AbortController();
  readonly #writes = new Set<Promise<unknown>>();
  /** The last write of the status of each pod. With it, the writes of a pod keep their order. */
  readonly #last = new Map<string, Promise<unknown>>();
  #following: Promise<void> = Promise.resolve();
  #isOn = true;
  #cancelBeat: () => void = () => undefined;

  private constructor(options: KubeletOptions) {
    this.#options = options;
    this.name = options.name;
    this.root = join(options.directory, 'root');
    this.#informer = createInformer(options.client, pods, {
      fieldSelector: `spec.nodeName=${options.name}`,
    });
  }

  /** Resolves when the kubelet has reported the Node as Ready. */
  static async start(options: KubeletOptions): Promise<Kubelet> {
    const kubelet = new Kubelet(options);
    await mkdir(kubelet.root, { recursive: true });
    await kubelet.#beat('True');
    const follow = (pod: Pod): void => kubelet.#follow(pod);
    kubelet.#informer.addHandler({
      added: follow,
      updated: follow,
      deleted: ({ metadata }) => kubelet.#runs.get(metadata.uid ?? '')?.stop(0),
    });
    kubelet.#following = kubelet.#informer.run(kubelet.#stopping.signal);
    return kubelet;
  }

  /**
   * Kills every process at once, and runs `whileDown` while the machine has no power. Then starts the pods again whose
   * restart policy is `Always`.
   */
  async reboot(
    whileDown: () => Promise<void> = async () => await Promise.resolve(),
  ): Promise<void> {
    this.#isOn = false;
    this.#cancelBeat();
    const lost = [...this.#runs];
    await Promise.all(lost.map(async ([, run]) => await run.cut()));
    await whileDown();
    this.bootId = randomUUID();
    this.#isOn = true;
    await this.#beat('False');
    for (const [uid, run] of lost) {
      const pod = this.#informer.list().find(({ metadata }) => metadata.uid === uid);
      const isAgain = pod && specOf(pod).restartPolicy === 'Always';
      if (isAgain) this.#runs.delete(uid);
      else run.reportLost();
    }
    for (const pod of this.#informer.list()) this.#follow(pod);
    await this.#beat('True');
  }

  /** Ends all processes. */
  async stop(): Promise<void> {
    this.#isOn = false;
    this.#cancelBeat();
    this.#stopping.abort(new Error('the kubelet stops'));
    await Promise.all([...this.#runs.values()].map(async (run) => await run.cut()));
    await this.#following;
    await Promise.all(this.#writes);
  }

  #follow(pod: Pod): void {
    if (!this.#isOn) return;
    const { uid = '', deletionTimestamp } = pod.metadata;
    const isOver = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    const known = this.#runs.get(uid);
    if (deletionTimestamp !== undefined) {
      known?.stop(graceOf(pod));
      // The pod is removed after its last status report.
      void (known?.ended ?? Promise.resolve()).then(() =>
        this.#write(uid, async () => await this.#remove(pod)),
      );
    } else if (!known && !isOver) {
      this.#runs.set(uid, this.#begin(pod));
    }
  }

  #begin(pod: Pod): PodRun {
    const { client, images, directory } = this.#options;
    const { name, namespace, uid = '' } = pod.metadata;
    const report = (status: object): void =>
      this.#write(uid, async () => {
        const patch = { metadata: { uid }, status };
        await client.patch(pods, name, patch, { namespace, type: 'merge', subresource: 'status' });
      });
    return new PodRun(pod, {
      client,
      images,
      report,
      hostRoot: this.root,
      directory: join(directory, 'pods', `${name}-${uid}`),
    });
  }

  async #remove({ metadata }: Pod): Promise<void> {
    const { name, namespace, uid } = metadata;
    await this.#options.client.delete(pods, name, { namespace, uid, gracePeriodSeconds: 0 });
  }

  /** Does the writes of each pod in order. If the pod is gone, or another pod has its name now, no write is needed. */
  #write(uid: string, write: () => Promise<void>): void {
    const writing = (this.#last.get(uid) ?? Promise.resolve())
      .then(async () => (this.#stopping.signal.aborted ? undefined : await write()))
      .catch((error: unknown) => {
        const isOver = isNotFound(error) || isConflict(error) || this.#stopping.signal.aborted;
        if (!isOver) throw error;
      })
      .finally(() => this.#writes.delete(writing));
    this.#last.set(uid, writing);
    this.#writes.add(writing);
  }

  async #beat(status: 'True' | 'False'): Promise<void> {
    const { client, name, version } = this.#options;
    this.#cancelBeat();
    const now = rfc3339(systemClock.now());
    const reason = status === 'True' ? 'KubeletReady' : 'KubeletNotReady';
    const ready = {
      type: 'Ready',
      status,
      reason,
      message: '',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    const nodeInfo = { kubeletVersion: kubernetesPartOf(version), bootID: this.bootId };
    const patch = { status: { conditions: [ready], nodeInfo, capacity: ROOM, allocatable: ROOM } };
    await client.patch(nodes, name, patch, { type: 'merge', subresource: 'status' });
    if (this.#isOn)
      this.#cancelBeat = systemClock.schedule(
        HEARTBEAT_MS,
        () => void this.#beat('True').catch(() => undefined),
      );
  }
}

/** Seconds. */
function graceOf({ metadata }: Pod): number {
  return (metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds ?? 30;
}
