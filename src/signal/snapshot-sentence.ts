/** Says for people which snapshot of etcd a controller has, or why it has none. */
import type { EtcdSnapshot } from './annotations.ts';

/** Returns a sentence without a full stop. `name` is the name of the controller. */
export function snapshotSentence(
  name: string,
  { at, path, bytes, sha256, none, failed }: EtcdSnapshot,
): string {
  if (path !== undefined) {
    const details = [
      `${bytes ?? 'unknown'} bytes`,
      `SHA-256 ${sha256 ?? 'unknown'}`,
      `taken ${at}`,
    ];
    return `of etcd on ${name}: ${path} (${details.join(', ')})`;
  }
  return failed === undefined
    ? `not taken of etcd on ${name}: ${none ?? 'its agent gave no reason'}`
    : `not taken of etcd on ${name}: it failed (${failed})`;
}
