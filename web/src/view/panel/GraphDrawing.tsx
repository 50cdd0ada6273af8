/** A graph as boxes and lines, laid out in rows by how far each node is from the start. */

import { Background, BaseEdge, Controls, MarkerType, ReactFlow } from "@xyflow/react";
import type { Edge, EdgeProps, Node } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";

export interface GraphShape {
  nodes: { id: string; kind?: string }[];
  edges: { source: string; target: string; label?: string }[];
}

const [ACROSS, DOWN] = [170, 90];
const BEND = 140;
const KINDS = { back: BackEdge };
const ROOM = { padding: { left: "52px", right: "20px", y: "40px" } } as const; // for the lines that lead back

export function GraphDrawing({ graph, running, done }: { graph: GraphShape; running: ReadonlySet<string>; done: ReadonlySet<string> }) {
  const places = useMemo(() => rowsOf(graph), [graph]);
  const edges = useMemo(() => drawnEdges(graph, places), [graph, places]);
  const nodes: Node[] = graph.nodes.map((node) => ({
    id: node.id,
    position: places.get(node.id) ?? { x: 0, y: 0 },
    data: { label: node.id.replace(/^__(.+)__$/, "$1") },
    className: running.has(node.id) ? "node-running" : done.has(node.id) ? "node-done" : "",
    draggable: false,
  }));
  return (
    <div className="graph">
      <ReactFlow nodes={nodes} edges={edges} edgeTypes={KINDS} fitView fitViewOptions={ROOM} nodesConnectable={false} proOptions={{ hideAttribution: false }}>
        <Background />
        <Controls showInteractive={false} position="top-right" />
      </ReactFlow>
    </div>
  );
}

function drawnEdges(graph: GraphShape, places: ReadonlyMap<string, { y: number }>): Edge[] {
  const row = (id: string) => places.get(id)?.y ?? 0;
  return graph.edges.map((edge, at) => ({
    id: String(at),
    source: edge.source,
    target: edge.target,
    ...(edge.label ? { label: edge.label } : {}),
    ...(row(edge.target) <= row(edge.source) ? { type: "back" } : {}),
    markerEnd: { type: MarkerType.ArrowClosed },
  }));
}

/** A way back up, around the boxes it would vanish behind. */
function BackEdge({ id, sourceX, sourceY, targetX, targetY, label, markerEnd = "" }: EdgeProps) {
  const [out, back] = [sourceX - BEND, targetX - BEND];
  const path = `M ${sourceX} ${sourceY} C ${out} ${sourceY + BEND / 2} ${back} ${targetY - BEND / 2} ${targetX} ${targetY}`;
  return <BaseEdge id={id} path={path} label={label} labelX={(out + back) / 2 + BEND / 4} labelY={(sourceY + targetY) / 2} markerEnd={markerEnd} />;
}

/** Each node's place: its row is its shortest way from a node nothing leads to. */
export function rowsOf(graph: GraphShape): Map<string, { x: number; y: number }> {
  const targets = new Set(graph.edges.map((edge) => edge.target));
  const first = graph.nodes.filter((node) => !targets.has(node.id)).map((node) => node.id);
  const row = new Map<string, number>();
  let front = first.length > 0 ? first : graph.nodes.slice(0, 1).map((node) => node.id);
  for (let depth = 0; front.length > 0; depth += 1) {
    for (const id of front) row.set(id, depth);
    front = [...new Set(graph.edges.filter((edge) => front.includes(edge.source)).map((edge) => edge.target))].filter((id) => !row.has(id));
  }
  const filled = new Map<number, number>();
  const places = new Map<string, { x: number; y: number }>();
  for (const node of graph.nodes) {
    const depth = row.get(node.id) ?? 0;
    const column = filled.get(depth) ?? 0;
    filled.set(depth, column + 1);
    places.set(node.id, { x: column * ACROSS, y: depth * DOWN });
  }
  return places;
}
