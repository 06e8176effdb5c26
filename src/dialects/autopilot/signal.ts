/** Owns which objects carry the signals of Plans: ControlNodes for controllers, Nodes for workers. */
import { annotationSignal, strangersAmong } from '../annotation-signal.ts';
import { OBJECTS } from './discovery.ts';

export const signal = annotationSignal(OBJECTS);
export const strangers = strangersAmong(OBJECTS);
