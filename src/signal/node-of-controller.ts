/** Owns the way from a ControlNode to the Node of the same host, as k0s resolves it. */
import { type ControlNode, MODE_ANNOTATION } from './names.ts';

/** The name under which pods run on the host of this controller; undefined where none do. */
export function nodeNameOf(object: ControlNode | undefined): string | undefined {
  if (object?.metadata.annotations?.[MODE_ANNOTATION] !== 'controller+worker') return undefined;
  return object.status?.addresses?.find(({ type }) => type === 'Hostname')?.address ?? object.metadata.name;
}
