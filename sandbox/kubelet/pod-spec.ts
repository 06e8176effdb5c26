/** The fields of a pod that only the test kubelet reads. */
import type { Pod } from '../../src/kube/resources.ts';

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly {
    name: string;
    value?: string;
    valueFrom?: { fieldRef?: { fieldPath: string } };
  }[];
  readonly volumeMounts?: readonly { name: string; mountPath: string }[];
}

export interface VolumeSpec {
  readonly name: string;
  readonly hostPath?: { path: string };
  readonly secret?: { secretName: string; optional?: boolean };
  readonly downwardAPI?: { items?: readonly { path: string; fieldRef?: { fieldPath: string } }[] };
}

export interface PodSpec {
  readonly initContainers?: readonly ContainerSpec[];
  readonly containers: readonly ContainerSpec[];
  readonly volumes?: readonly VolumeSpec[];
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  readonly activeDeadlineSeconds?: number;
  readonly nodeName?: string;
}

export function specOf({ spec }: Pod): PodSpec {
  return spec as unknown as PodSpec;
}

/** Returns the value of a downward API field. Each label and each annotation is one line. */
export function fieldOf(pod: Pod, path: string): string {
  const { metadata } = pod;
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'spec.nodeName': specOf(pod).nodeName,
    'metadata.labels': linesOf(metadata.labels),
    'metadata.annotations': linesOf(metadata.annotations),
  };
  return fields[path] ?? '';
}

function linesOf(entries: Readonly<Record<string, string>> = {}): string {
  return Object.entries(entries)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n');
}
