/** The knowledge of a leader: the objects in its views, and its own writes. */
import { freshWorld, OwnWrites, type Views } from '../../../src/engine/snapshot/world.ts';

export function knowledgeOf(views: Views, ownWrites = new OwnWrites()) {
  return { world: freshWorld(views, ownWrites), ownWrites };
}
